# SPDX-License-Identifier: Apache-2.0
"""A model of request routing: each request goes to the closest replica by RTT and load latency (Auspice, section 1.2.2).

Clients change replicas as measured load latencies change. `route` raises the load latency of a site that gets more than it can serve
and lowers it otherwise, in ever smaller steps. The average over the later rounds is the result; where a site is full, the requests
of a region for a record then go to several sites. This is the subgradient method on a transport problem, whose averages converge to
the optimum (Larsson, Patriksson and Stromberg 1999).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from frontage.mapping.placement.values import Demand, Flags, Parameters, PlacementError, Sites, Totals

STEP = 0.3
"""The first step of the load latencies, as a share of the mean RTT."""
ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Matrices:
    """Demand for a small number of records, as matrices."""

    reads: Totals
    """[record, region]: reads per second, times their cost."""
    updates: Totals
    """[record]: updates per second, times their cost."""
    requests: Totals
    """[record, region]: reads and updates per second from the region."""

    @classmethod
    def of(cls, demand: Demand, regions: int, parameters: Parameters) -> Matrices:
        """Convert sparse demand. Raises PlacementError if a region is unknown."""
        if len(demand.regions) and int(demand.regions.max()) >= regions:
            raise PlacementError(f"region {int(demand.regions.max())} is unknown: give RTTs for more than {regions} regions")
        record = np.repeat(np.arange(len(demand.keys)), np.diff(demand.starts))
        cell = record * regions + demand.regions
        shape = len(demand.keys), regions
        reads: Totals = np.bincount(cell, demand.reads, math.prod(shape)).reshape(shape).astype(np.float64)
        writes: Totals = np.bincount(cell, demand.writes, math.prod(shape)).reshape(shape).astype(np.float64)
        return cls(reads * parameters.read_cost, writes.sum(axis=1) * parameters.write_cost, reads + writes)


@dataclass(frozen=True, slots=True)
class Routed:
    """The routing of demand under a placement."""

    load: Totals
    """Load by site, in reads of cost 1 per second."""
    latency: float
    """Mean RTT from a request's region to the site that serves it, in microseconds, without load latency."""
    load_latency: Totals
    """Load latency by site in microseconds, which keeps clients away from full sites."""

    def overload(self, sites: Sites) -> float:
        """Return the load of the fullest site above its capacity, as a share of the capacity; 0 if no site is overloaded."""
        usable = sites.usable
        return max(0.0, float((self.load[usable] / sites.capacity[usable]).max()) - 1)


def nearest(chosen: Flags, demand: Matrices, sites: Sites) -> Routed:
    """Route each request to the closest replica by the sites' present load latencies."""
    return route(chosen, demand, sites, rounds=1)


def route(chosen: Flags, demand: Matrices, sites: Sites, rounds: int = ROUNDS) -> Routed:
    """Route requests, starting from the sites' load latencies, until they settle."""
    known = reachable(sites)
    times = np.where(chosen[:, None], known, np.inf).reshape(-1, known.shape[1])
    requests, reads, updates = demand.requests.ravel(), demand.reads.ravel(), demand.updates @ chosen
    cells = np.arange(len(times))
    now = sites.load_latency.astype(np.float64)
    load, latency, waits = np.zeros(len(now)), 0.0, np.zeros(len(now))
    counted, step = rounds - rounds // 2, STEP * float(known.mean())
    for number in range(rounds):
        where = (times + now).argmin(axis=1)
        found = np.bincount(where, reads, len(now)) + updates
        if number >= rounds // 2:
            load += found / counted
            latency += float(times[cells, where] @ requests) / counted
            waits += now / counted
        now = adapted(now, found, sites, step / math.sqrt(number + 1))
    return Routed(load, latency / max(float(requests.sum()), math.ulp(0.0)), waits)


def adapted(load_latency: Totals, load: Totals, sites: Sites, step: float) -> Totals:
    """Return raised load latencies of overloaded sites, and lowered ones of others: ``step`` microseconds per multiple of capacity."""
    full = np.divide(load, sites.capacity, out=np.ones_like(load), where=sites.usable)
    return np.maximum(0, load_latency + step * (full - 1))


def reachable(sites: Sites) -> Totals:
    """Return the RTTs, with twice the longest in place of unknown ones."""
    known = sites.rtts[np.isfinite(sites.rtts)]
    return np.where(np.isfinite(sites.rtts), sites.rtts, 2 * known.max(initial=0)).astype(np.float64)

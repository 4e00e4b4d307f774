"""Where requests go by a placement, as a model: each to the closest replica, by RTT and load latency (Auspice, section 1.2.2).

Clients move between replicas as the load latencies that they measure do. `route` lets these rise where a site gets more than it
can serve and fall where it gets less, in ever smaller steps; what the later rounds had on average is where clients end up, requests
of a region for a record going to several sites where one is full. (It is the subgradient method on a transport problem, whose
averages converge to its optimum: Larsson, Patriksson and Stromberg 1999.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from frontage.mapping.placement.values import Demand, Flags, Parameters, PlacementError, Sites, Totals

STEP = 0.3
"""The first step of load latencies, as a share of the mean RTT."""
ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Matrices:
    """Demand for few records, as matrices."""

    reads: Totals
    """[record, region], per second, times their cost."""
    updates: Totals
    """[record], per second, times their cost."""
    requests: Totals
    """[record, region], reads and updates of clients there."""

    @classmethod
    def of(cls, demand: Demand, regions: int, parameters: Parameters) -> Matrices:
        """PlacementError if a region is unknown."""
        if len(demand.regions) and int(demand.regions.max()) >= regions:
            raise PlacementError(f"region {int(demand.regions.max())} is unknown: RTTs are of {regions} regions")
        record = np.repeat(np.arange(len(demand.keys)), np.diff(demand.starts))
        cell = record * regions + demand.regions
        shape = len(demand.keys), regions
        reads: Totals = np.bincount(cell, demand.reads, math.prod(shape)).reshape(shape).astype(np.float64)
        writes: Totals = np.bincount(cell, demand.writes, math.prod(shape)).reshape(shape).astype(np.float64)
        return cls(reads * parameters.read_cost, writes.sum(axis=1) * parameters.write_cost, reads + writes)


@dataclass(frozen=True, slots=True)
class Routed:
    """What becomes of demand."""

    load: Totals
    """By site, in reads of cost 1 per second."""
    latency: float
    """Microseconds from a request's region to the site that serves it, on average over requests; load latency left out."""
    load_latency: Totals
    """By site: what keeps clients from the full ones, in microseconds."""

    def overload(self, sites: Sites) -> float:
        """By which share of its capacity the fullest site is asked too much; 0 if none is."""
        usable = sites.usable
        return max(0.0, float((self.load[usable] / sites.capacity[usable]).max()) - 1)


def nearest(chosen: Flags, demand: Matrices, sites: Sites) -> Routed:
    """Each request at the closest replica, by the load latencies that the sites have."""
    return route(chosen, demand, sites, rounds=1)


def route(chosen: Flags, demand: Matrices, sites: Sites, rounds: int = ROUNDS) -> Routed:
    """Where clients end up who begin with the sites' load latencies."""
    known = reachable(sites)
    ways = np.where(chosen[:, None], known, np.inf).reshape(-1, known.shape[1])
    requests, reads, updates = demand.requests.ravel(), demand.reads.ravel(), demand.updates @ chosen
    cells = np.arange(len(ways))
    now = sites.load_latency.astype(np.float64)
    load, latency, waits = np.zeros(len(now)), 0.0, np.zeros(len(now))
    counted, step = rounds - rounds // 2, STEP * float(known.mean())
    for number in range(rounds):
        where = (ways + now).argmin(axis=1)
        found = np.bincount(where, reads, len(now)) + updates
        if number >= rounds // 2:
            load += found / counted
            latency += float(ways[cells, where] @ requests) / counted
            waits += now / counted
        now = adapted(now, found, sites, step / math.sqrt(number + 1))
    return Routed(load, latency / max(float(requests.sum()), math.ulp(0.0)), waits)


def adapted(load_latency: Totals, load: Totals, sites: Sites, step: float) -> Totals:
    """Higher where a site gets too much: by ``step`` microseconds at one that gets twice what it can serve."""
    full = np.divide(load, sites.capacity, out=np.ones_like(load), where=sites.usable)
    return np.maximum(0, load_latency + step * (full - 1))


def reachable(sites: Sites) -> Totals:
    """The RTTs, where none is known twice the longest."""
    known = sites.rtts[np.isfinite(sites.rtts)]
    return np.where(np.isfinite(sites.rtts), sites.rtts, 2 * known.max(initial=0)).astype(np.float64)

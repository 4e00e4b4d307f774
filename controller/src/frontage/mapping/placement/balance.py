"""Placement where sites are nearly full and no load latencies have been measured: before a first epoch, or to see what would be.

The engine avoids busy sites by what requests wait there, and finds that out by measuring. `balance` goes through such epochs by a
model: place, let clients go to the closest replicas, raise load latencies where a site gets too much. These are the prices of
capacity in the Lagrangian dual of the placement problem, whose subproblems are what the engine solves record by record. Among many
records that is all there is to it. Few large ones do not divide: a price moves all of a record's load or none. So the best epochs'
placements are improved by exchanges, one replica of one record at a time, judged by what becomes of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.routing import Matrices, Routed, adapted, nearest, reachable, route
from frontage.mapping.placement.values import Demand, Flags, Parameters, Sites

EPOCHS = 60
STARTS = 8
"""Epochs whose placements are improved."""
WIDTH = 24
"""Exchanges that are judged before a placement passes for the best around it."""
_STEP = 0.1
"""The first step of load latencies from epoch to epoch, as a share of the mean RTT."""
_AVERSION = 40.0
"""What counts a site's being asked too much, by the share of its capacity, as a share of latency."""


@dataclass(frozen=True, slots=True)
class Balance:
    """A placement, and what becomes of demand by it."""

    chosen: Flags
    """[record, site]."""
    routed: Routed
    score: float
    """Latency, and more where a site is asked too much."""


def balance(demand: Demand, sites: Sites, parameters: Parameters) -> Balance:
    """For up to some hundred records. The load latencies of a sample, with its share of capacity, do for many."""
    engine = Engine(sites, parameters)
    engine.observe(demand)
    matrices = Matrices.of(demand, len(sites.rtts), parameters)
    step = _STEP * float(reachable(sites).mean())
    tried: dict[bytes, Balance] = {}
    for number in range(EPOCHS):
        engine.plan()
        chosen = engine.masks(demand.keys)
        if chosen.tobytes() not in tried:
            tried[chosen.tobytes()] = _judged(chosen, matrices, sites)
        latency = engine.sites.load_latency.astype(np.float64)
        load = nearest(chosen, matrices, engine.sites).load
        engine.measure(adapted(latency, load, sites, step / (number + 1) ** 0.5).astype(np.float32))
        engine.again(demand.keys)
    starts = sorted(tried.values(), key=lambda found: found.score)[:STARTS]
    return min((_improved(start, matrices, sites) for start in starts), key=lambda found: found.score)


def settled(demand: Demand, sites: Sites, parameters: Parameters) -> Engine:
    """An engine with these records where `balance` puts them, and the load latencies that follow."""
    found = balance(demand, sites, parameters)
    engine = Engine(sites.loaded(found.routed.load_latency.astype(np.float32)), parameters)
    engine.observe(demand)
    engine.plan()
    engine.adopt(demand.keys, found.chosen)
    return engine


def _judged(chosen: Flags, demand: Matrices, sites: Sites) -> Balance:
    routed = route(chosen, demand, sites)
    return Balance(chosen, routed, routed.latency * (1 + _AVERSION * routed.overload(sites)))


def _improved(best: Balance, demand: Matrices, sites: Sites) -> Balance:
    """After exchanges while one of the most promising makes it better."""
    tried = {best.chosen.tobytes()}
    while True:
        for record, old, new in _exchanges(best, demand, sites):
            chosen = best.chosen.copy()
            chosen[record, [old, new]] = False, True
            if chosen.tobytes() in tried:
                continue
            tried.add(chosen.tobytes())
            found = _judged(chosen, demand, sites)
            if found.score < best.score:
                best = found
                break
        else:
            return best


def _exchanges(now: Balance, demand: Matrices, sites: Sites) -> list[tuple[int, int, int]]:
    """(record, the site it leaves, the site it comes to), the best by the load latencies that there are now first."""
    latency = now.routed.load_latency
    distance = reachable(sites) + latency
    found: list[tuple[float, int, int, int]] = []
    for record, chosen in enumerate(now.chosen):
        free = np.flatnonzero(~chosen & sites.usable)
        requests = demand.requests[record]
        for old in np.flatnonzero(chosen).tolist():
            others = np.where(chosen, distance, np.inf)
            others[:, old] = np.inf
            ways = np.minimum(others.min(axis=1)[:, None], distance[:, free])
            value = requests @ ways + demand.updates[record] * (latency[free] - latency[old])
            value -= requests @ np.where(chosen, distance, np.inf).min(axis=1)
            found += [(float(gain), record, old, new) for gain, new in zip(value, free.tolist(), strict=True)]
    return [(record, old, new) for _, record, old, new in sorted(found)[:WIDTH]]

# SPDX-License-Identifier: Apache-2.0
"""Placement for nearly full sites without measured load latencies: before the first epoch, or to predict an outcome.

The engine avoids busy sites by their load latency, which is measured. `balance` computes it with a model: it places the records,
routes requests to the closest replicas, and raises the load latency of overloaded sites, epoch by epoch. Load latencies are the
prices of capacity in the Lagrangian dual of the placement problem; the engine solves its subproblems record by record. With many
records this suffices. With few large records a price moves all of a record's load or none. So the placements of the best epochs are
improved by exchanges of one replica of one record, each judged by its effect on all records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.routing import Matrices, Routed, adapted, nearest, reachable, route
from frontage.mapping.placement.values import Demand, Flags, Parameters, Sites

EPOCHS = 60
STARTS = 8
"""Number of epochs whose placements are improved by exchanges."""
WIDTH = 24
"""Exchanges that are tried before a placement counts as a local optimum."""
_STEP = 0.1
"""The first step of the load latencies, as a share of the mean RTT."""
_AVERSION = 40.0
"""Penalty for overload: share of latency added per share of capacity exceeded."""


@dataclass(frozen=True, slots=True)
class Balance:
    """A placement and the routing of demand under it."""

    chosen: Flags
    """[record, site]."""
    routed: Routed
    score: float
    """Latency, increased by the penalty for overload."""


def balance(demand: Demand, sites: Sites, parameters: Parameters) -> Balance:
    """Place up to a few hundred records. For more, compute the load latencies of a sample with its share of the capacity."""
    engine = Engine(sites, parameters)
    engine.observe(demand)
    matrices = Matrices.of(demand, len(sites.rtts), parameters)
    step = _STEP * float(reachable(sites).mean())
    tried: dict[bytes, Balance] = {}
    for number in range(EPOCHS):
        engine.plan()
        chosen = engine.masks(demand.keys)
        if chosen.tobytes() not in tried:
            tried[chosen.tobytes()] = _evaluate(chosen, matrices, sites)
        latency = engine.sites.load_latency.astype(np.float64)
        load = nearest(chosen, matrices, engine.sites).load
        engine.measure(adapted(latency, load, sites, step / (number + 1) ** 0.5).astype(np.float32))
        engine.again(demand.keys)
    starts = sorted(tried.values(), key=lambda found: found.score)[:STARTS]
    return min((_improve(start, matrices, sites) for start in starts), key=lambda found: found.score)


def settled(demand: Demand, sites: Sites, parameters: Parameters) -> Engine:
    """Return an engine with the placement of `balance` and the resulting load latencies."""
    found = balance(demand, sites, parameters)
    engine = Engine(sites.loaded(found.routed.load_latency.astype(np.float32)), parameters)
    engine.observe(demand)
    engine.plan()
    engine.adopt(demand.keys, found.chosen)
    return engine


def _evaluate(chosen: Flags, demand: Matrices, sites: Sites) -> Balance:
    routed = route(chosen, demand, sites)
    return Balance(chosen, routed, routed.latency * (1 + _AVERSION * routed.overload(sites)))


def _improve(best: Balance, demand: Matrices, sites: Sites) -> Balance:
    """Apply exchanges as long as one of the most promising improves the score."""
    tried = {best.chosen.tobytes()}
    while True:
        for record, old, new in _exchanges(best, demand, sites):
            chosen = best.chosen.copy()
            chosen[record, [old, new]] = False, True
            if chosen.tobytes() in tried:
                continue
            tried.add(chosen.tobytes())
            found = _evaluate(chosen, demand, sites)
            if found.score < best.score:
                best = found
                break
        else:
            return best


def _exchanges(now: Balance, demand: Matrices, sites: Sites) -> list[tuple[int, int, int]]:
    """Return exchanges as (record, old site, new site), the best by the present load latencies first."""
    latency = now.routed.load_latency
    distance = reachable(sites) + latency
    found: list[tuple[float, int, int, int]] = []
    for record, chosen in enumerate(now.chosen):
        free = np.flatnonzero(~chosen & sites.usable)
        requests = demand.requests[record]
        for old in np.flatnonzero(chosen).tolist():
            others = np.where(chosen, distance, np.inf)
            others[:, old] = np.inf
            times = np.minimum(others.min(axis=1)[:, None], distance[:, free])
            value = requests @ times + demand.updates[record] * (latency[free] - latency[old])
            value -= requests @ np.where(chosen, distance, np.inf).min(axis=1)
            found += [(float(gain), record, old, new) for gain, new in zip(value, free.tolist(), strict=True)]
    return [(record, old, new) for _, record, old, new in sorted(found)[:WIDTH]]

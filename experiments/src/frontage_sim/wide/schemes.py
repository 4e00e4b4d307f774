# SPDX-License-Identifier: Apache-2.0
"""Where names are, by the schemes that the paper compares (section 2.1): demand-aware, at random, everywhere, or by a DHT."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.counts import replicate
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.routing import Matrices, adapted, nearest
from frontage.mapping.placement.values import Demand, Parameters, Sites
from frontage_sim.wide.dht import Dht
from frontage_sim.wide.latencies import Array
from frontage_sim.wide.places import Places
from frontage_sim.wide.scenario import BASES, Costs, Load, Scheme
from frontage_sim.wide.workload import Workload

Flags = npt.NDArray[np.bool_]

LEAST = 3
"""F, and M of Random-M."""
_EPOCHS = 300
"""In which load latencies settle before the placement that is used."""
_AGAIN = 0.03
"""The share of names that are placed anew in each: all at once would leave one site for another together, and come back together."""
_MEASURED = 6
"""Epochs from one look at where lookups go to the next, which takes most of the time; updates go to replicas, whoever asks."""
_STEP = 0.1
"""The first step of load latencies, as a share of the mean RTT."""
_ROOM = 1.1
"""How full the fullest server may be, by all together, where they are asked for more than placement is told that they can do."""


class Route(Protocol):
    """A lookup's way from server to server behind the first."""

    def __call__(self, name: int, entry: int) -> list[int]: ...


@dataclass(frozen=True)
class Placed:
    chosen: Flags
    """[name, server]"""
    asked: Flags
    """[name, server]: those that a client may ask first."""
    onward: Route | None
    """Where who is asked first sends a lookup on, until one has the name; None: it has it."""


def place(scheme: Scheme, demand: Workload, places: Places, settings: Load) -> Placed:
    if scheme == "replicate-all":
        return _plain(np.ones((len(demand.guids), len(places.servers)), np.bool_))
    if scheme == "random-3":
        return _plain(at_random(demand, len(places.servers), LEAST, settings.seed))
    if scheme in ("frontage", "auspice"):
        return _plain(by_demand(demand, places, parameters(scheme, settings.costs, settings.seed), settings.costs))
    known = parameters("auspice", settings.costs, settings.seed)
    counts = replicate(demand.reads, demand.writes, settings.costs.told * len(places.servers), len(places.servers), known).counts
    tables = np.random.default_rng([settings.seed, 11]) if scheme == "dht-any-hop" else None
    dht = Dht(demand.guids, places, BASES[scheme], LEAST, tables)
    chosen = dht.replicate(demand.reads, settings.alpha, float(counts.mean()))
    if scheme == "dht-closest":
        return _plain(chosen)
    return Placed(chosen, np.ones_like(chosen), lambda name, entry: dht.route(name, entry, chosen[name]))


def parameters(scheme: Scheme, costs: Costs, seed: int) -> Parameters:
    """Ours, or those of the paper's prototype."""
    if scheme == "auspice":
        return Parameters(min_replicas=LEAST, nu=0.5, weighed=0, write_cost=costs.write, seed=seed)
    return Parameters(min_replicas=LEAST, write_cost=costs.write, seed=seed)


def sites(places: Places, capacity: float) -> Sites:
    return Sites.of(np.full(len(places.servers), capacity), places.rtt * 1e6, ids=range(len(places.servers)))


def by_demand(demand: Workload, places: Places, parameters: Parameters, costs: Costs) -> Flags:
    """As after some epochs in which sites measured what requests wait, with the workload known beforehand as in the paper."""
    known = sites(places, costs.told)
    asked: Demand = demand.demand()
    engine = Engine(known, parameters)
    engine.observe(asked)
    matrices = Matrices.of(asked, len(places.clients), parameters)
    step = _STEP * float(known.rtts.mean())
    rng = np.random.default_rng([parameters.seed, 5])
    best, least = engine.masks(asked.keys[:0]), np.inf
    lookups = np.zeros(len(places.servers))
    for number in range(_EPOCHS):
        engine.plan()
        chosen = engine.masks(asked.keys)
        updates = matrices.updates @ chosen
        if measured := number % _MEASURED == 0:
            lookups = nearest(chosen, matrices, engine.sites).load - updates
        load = (lookups + updates) / known.capacity
        if measured and number >= _EPOCHS * 3 // 4 and load.max() < least:
            best, least = chosen, float(load.max())
        full = max(1.0, _ROOM * float(load.mean()))
        latency = adapted(
            engine.sites.load_latency.astype(np.float64), load / full * known.capacity, known, step / (number + 1) ** 0.5
        )
        engine.measure(latency.astype(np.float32))
        engine.again(asked.keys[rng.random(len(asked.keys)) < _AGAIN])
    return best


def at_random(demand: Workload, servers: int, replicas: int, seed: int) -> Flags:
    drawn: Array = np.random.default_rng([seed, 3]).random((len(demand.guids), servers))
    chosen: Flags = drawn.argsort(axis=1).argsort(axis=1) < replicas
    return chosen


def _plain(chosen: Flags) -> Placed:
    return Placed(chosen, chosen, None)


def coordinators(guids: tuple[str, ...], chosen: Flags) -> npt.NDArray[np.int64]:
    """The replica that orders a name's updates: an elected one, which is any of them."""
    drawn = [int.from_bytes(hashlib.blake2s(guid.encode(), digest_size=8, person=b"leader").digest(), "big") for guid in guids]
    return np.array([np.flatnonzero(line)[number % int(line.sum())] for line, number in zip(chosen, drawn, strict=True)])

# SPDX-License-Identifier: Apache-2.0
"""The placement schemes that the paper compares (section 2.1): by demand, at random, everywhere, or by a DHT."""

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
from frontage_sim.auspice.dht import Dht
from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.scenario import DHT_BASES, Costs, Load, Scheme
from frontage_sim.auspice.topology import Topology
from frontage_sim.auspice.workload import Workload

Flags = npt.NDArray[np.bool_]

MIN_REPLICAS = 3
"""F, and the M of Random-M."""
_EPOCHS = 300
"""Epochs in which load latencies settle before the placement is used."""
_REPLACED_SHARE = 0.03
"""Share of the names that are placed again in each epoch. If all were, they would leave a busy site together and return together."""
_LOOKUP_EPOCHS = 6
"""Epochs between two computations of the sites' lookup load, which take most of the time. Updates go to all replicas."""
_FIRST_STEP = 0.1
"""First step of the load latencies, as a share of the mean RTT."""
_MAX_RELATIVE_LOAD = 1.1
"""Load of the fullest server, relative to the mean, when the total demand exceeds the capacity that placement assumes."""


class Forward(Protocol):
    """Returns the servers that a lookup passes after the first."""

    def __call__(self, name: int, entry: int) -> list[int]: ...


@dataclass(frozen=True)
class Placement:
    """The replicas of all names, and the paths of lookups to them."""

    chosen: Flags
    """[name, server]: servers with a replica."""
    entries: Flags
    """[name, server]: servers to which a client may send its lookup."""
    forward: Forward | None
    """Path of a lookup from its entry server to a replica; None if every entry server has a replica."""


def place(scheme: Scheme, workload: Workload, topology: Topology, settings: Load) -> Placement:
    """Return the placement of all names by a scheme."""
    if scheme == "replicate-all":
        return _direct(np.ones((len(workload.guids), len(topology.servers)), np.bool_))
    if scheme == "random-3":
        return _direct(place_at_random(workload, len(topology.servers), MIN_REPLICAS, settings.seed))
    if scheme in ("frontage", "auspice"):
        return _direct(place_by_demand(workload, topology, parameters(scheme, settings.costs, settings.seed), settings.costs))
    auspice = parameters("auspice", settings.costs, settings.seed)
    servers = len(topology.servers)
    counts = replicate(workload.reads, workload.writes, settings.costs.planned_capacity * servers, servers, auspice).counts
    tables = np.random.default_rng([settings.seed, 11]) if scheme == "dht-any-hop" else None
    dht = Dht(workload.guids, topology, DHT_BASES[scheme], MIN_REPLICAS, tables)
    chosen = dht.replicate(workload.reads, settings.alpha, float(counts.mean()))
    if scheme == "dht-closest":
        return _direct(chosen)
    return Placement(chosen, np.ones_like(chosen), lambda name, entry: dht.route(name, entry, chosen[name]))


def parameters(scheme: Scheme, costs: Costs, seed: int) -> Parameters:
    """Return the placement parameters of the paper's prototype (``auspice``) or our defaults."""
    if scheme == "auspice":
        return Parameters(min_replicas=MIN_REPLICAS, nu=0.5, weighed=0, write_cost=costs.update_cost, seed=seed)
    return Parameters(min_replicas=MIN_REPLICAS, write_cost=costs.update_cost, seed=seed)


def placement_sites(topology: Topology, capacity: float) -> Sites:
    """Return the servers as sites of equal capacity for the product's placement."""
    return Sites.of(np.full(len(topology.servers), capacity), topology.rtt * 1e6, ids=range(len(topology.servers)))


def place_by_demand(workload: Workload, topology: Topology, parameters: Parameters, costs: Costs) -> Flags:
    """Return the placement [name, server] after epochs in which the sites measured load latencies.

    The workload is known beforehand, as in the paper. Among the last quarter of the epochs, the one with the lowest maximum load counts.
    """
    sites = placement_sites(topology, costs.planned_capacity)
    demand: Demand = workload.demand()
    engine = Engine(sites, parameters)
    engine.observe(demand)
    matrices = Matrices.of(demand, len(topology.clients), parameters)
    step = _FIRST_STEP * float(sites.rtts.mean())
    rng = np.random.default_rng([parameters.seed, 5])
    best, least = engine.masks(demand.keys[:0]), np.inf
    lookups = np.zeros(len(topology.servers))
    for epoch in range(_EPOCHS):
        engine.plan()
        chosen = engine.masks(demand.keys)
        updates = matrices.updates @ chosen
        if is_measured := epoch % _LOOKUP_EPOCHS == 0:
            lookups = nearest(chosen, matrices, engine.sites).load - updates
        load = (lookups + updates) / sites.capacity
        if is_measured and epoch >= _EPOCHS * 3 // 4 and load.max() < least:
            best, least = chosen, float(load.max())
        full = max(1.0, _MAX_RELATIVE_LOAD * float(load.mean()))
        latency = adapted(
            engine.sites.load_latency.astype(np.float64), load / full * sites.capacity, sites, step / (epoch + 1) ** 0.5
        )
        engine.measure(latency.astype(np.float32))
        engine.again(demand.keys[rng.random(len(demand.keys)) < _REPLACED_SHARE])
    return best


def place_at_random(workload: Workload, servers: int, replicas: int, seed: int) -> Flags:
    """Return a placement [name, server] with ``replicas`` random servers per name."""
    drawn: Array = np.random.default_rng([seed, 3]).random((len(workload.guids), servers))
    chosen: Flags = drawn.argsort(axis=1).argsort(axis=1) < replicas
    return chosen


def _direct(chosen: Flags) -> Placement:
    """Return a placement in which clients send lookups to the replicas."""
    return Placement(chosen, chosen, None)


def coordinators(guids: tuple[str, ...], chosen: Flags) -> npt.NDArray[np.int64]:
    """Return the replica that orders each name's updates: an elected one, so a pseudo-random one."""
    drawn = [int.from_bytes(hashlib.blake2s(guid.encode(), digest_size=8, person=b"leader").digest(), "big") for guid in guids]
    return np.array([np.flatnonzero(row)[number % int(row.sum())] for row, number in zip(chosen, drawn, strict=True)])

# SPDX-License-Identifier: Apache-2.0
"""Adaptation to demand that moves every few epochs: how soon placement follows, and its cost in messages (Auspice, section 2.2.4).

Reports, plans and reconfigurations of all names are the product's. For some names, every lookup is simulated, with routers that cache the
active replicas and detect a stale cache.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.policy import Policy, Reconfigurer
from frontage.mapping.placement.values import Demand
from frontage_records.ring import Ring, partition
from frontage_records.routing import Routing
from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.lookups import Clients, Lookup, Network, simulate_lookups
from frontage_sim.auspice.scenario import Adaptation, AuspiceScenario
from frontage_sim.auspice.schemes import MIN_REPLICAS, Flags, parameters, placement_sites
from frontage_sim.auspice.topology import Topology, draw_topology
from frontage_sim.auspice.workload import Workload, draw_workload, record_keys, request_shares


def run(settings: AuspiceScenario) -> pl.DataFrame:
    """Return a row for each third of an epoch: lookup latencies, and messages per request in the epoch and since the start."""
    assert isinstance(settings, Adaptation)
    topology = draw_topology(settings.topology.servers, settings.topology.clients, settings.seed)
    workload = draw_workload(settings.names, settings.load, topology, settings.seed)
    rng = np.random.default_rng([settings.seed, 10])
    demand = _shifting_demand(workload, settings, topology, rng)
    placements, overheads = _simulate_placement(workload, demand, settings, topology, rng)
    followed = rng.choice(np.flatnonzero(~workload.service), settings.followed, replace=False).tolist()
    lookups = _draw_lookups(workload, demand, followed, settings, rng)
    clients = Clients(topology, Routing(controllers=MIN_REPLICAS, ttl=settings.epoch))
    replicas = {name: [tuple(np.flatnonzero(chosen[name]).tolist()) for chosen in placements] for name in followed}

    def active_replicas(name: int, now: float) -> tuple[int, ...]:
        return replicas[name][min(int(now / settings.epoch), settings.epochs - 1)]

    latencies = simulate_lookups(lookups, workload.guids, clients, Network(topology, lambda *_: 0.0), active_replicas)
    rows = pl.DataFrame({"time": [lookup.time for lookup in lookups], "latency": latencies})
    nearest = _nearest_server_rtt(followed, demand, topology)
    slot_duration = settings.epoch / 3
    slots = rows.group_by(slot=(pl.col("time") / slot_duration).floor().cast(pl.Int64)).agg(
        pl.col("latency").mean().alias("lookup"), pl.col("latency").quantile(0.9).alias("p90")
    )
    epoch = pl.col("slot") // 3
    epochs = range(settings.epochs)
    return slots.sort("slot").select(
        ((pl.col("slot") + 0.5) * slot_duration).alias("time"),
        epoch.alias("epoch"),
        "lookup",
        "p90",
        epoch.replace_strict(epochs, nearest, return_dtype=pl.Float64).alias("nearest"),
        epoch.replace_strict(epochs, [share for share, _ in overheads], return_dtype=pl.Float64).alias("messages"),
        epoch.replace_strict(epochs, [share for _, share in overheads], return_dtype=pl.Float64).alias("messages so far"),
    )


def _shifting_demand(workload: Workload, settings: Adaptation, topology: Topology, rng: np.random.Generator) -> list[Array]:
    """Return each client's share of a name's requests, [name, client], for each epoch."""
    demand = [workload.shares]
    locality = np.where(workload.service, settings.names.service_locality, settings.names.device_locality)
    for epoch in range(1, settings.epochs):
        has_moved = int(epoch * settings.epoch // settings.shift) > int((epoch - 1) * settings.epoch // settings.shift)
        centres = rng.integers(len(topology.clients), size=len(workload.guids))
        demand.append(request_shares(centres, locality, topology) if has_moved else demand[-1])
    return demand


def _simulate_placement(
    workload: Workload, demand: list[Array], settings: Adaptation, topology: Topology, rng: np.random.Generator
) -> tuple[list[Flags], list[tuple[float, float]]]:
    """Return the placement [name, server] in each epoch, and the messages per request in each epoch and up to it."""
    names, servers = len(workload.guids), len(topology.servers)
    sites = placement_sites(topology, settings.costs.planned_capacity)
    engine = Engine(sites, parameters("frontage", settings.costs, settings.seed))
    policy = Policy(controllers=MIN_REPLICAS)
    reconfigurer = Reconfigurer(policy)
    keys = record_keys(workload.guids)
    ring = Ring(range(servers), MIN_REPLICAS)
    active = np.zeros((names, servers), np.bool_)
    for name, guid in enumerate(workload.guids):
        active[name, list(ring.controllers(partition(guid)))] = True
    reports = _LoadReports(names, servers, len(topology.clients))
    placements, overheads = [active], []
    for epoch in range(settings.epochs):
        rates = np.stack([workload.reads, workload.writes])[:, :, None] * demand[epoch]
        requests = rng.poisson(rates * settings.epoch).astype(np.float64)
        sent = reports.end_epoch(requests.sum(axis=0), active, topology.rtt, policy)
        before = reconfigurer.overhead.messages, reconfigurer.overhead.requests
        reconfigurer.count(keys, requests.sum(axis=(0, 2)).astype(np.int64), sent)
        reporting = np.flatnonzero(sent)
        if len(reporting):
            # Load reports count lookups and updates of a region together; the ratio of both is taken from the name's own rates.
            reported = reports.reported(reporting)
            reported /= reported.sum(axis=1, keepdims=True)
            reads, writes = workload.reads[reporting, None] * reported, workload.writes[reporting, None] * reported
            engine.observe(Demand.dense(keys[reporting], reads, writes))
            engine.plan()
            rows = np.flatnonzero(reports.has_reported)
            wanted = active.copy()
            wanted[rows] = engine.masks(keys[rows])
            due = reconfigurer.decide(keys, active, wanted)
            active = np.where(due[:, None], wanted, active)
        overhead = reconfigurer.overhead
        overheads.append(((overhead.messages - before[0]) / (overhead.requests - before[1]), overhead.share))
        placements.append(active)
    return placements[: settings.epochs], overheads


class _LoadReports:
    """Requests that active replicas have counted since their last load reports, and the contents of those reports."""

    def __init__(self, names: int, servers: int, clients: int):
        self._counted: Array = np.zeros((names, servers, clients))
        self._epochs = np.zeros((names, servers))
        self._reported: Array = np.zeros((names, servers, clients))
        """Requests per epoch."""
        self.has_reported = np.zeros(names, np.bool_)

    def end_epoch(self, requests: Array, active: Flags, rtt: Array, policy: Policy) -> npt.NDArray[np.int64]:
        """Count an epoch's requests [name, client] at the nearest active replicas, and return the number of reports per name."""
        nearest = np.where(active[:, None], rtt, np.inf).argmin(axis=2)
        name, client = np.indices(nearest.shape)
        np.add.at(self._counted, (name, nearest, client), requests)
        self._epochs += 1
        self._reported[~active] = 0
        served = self._counted.sum(axis=2)
        flat = (-1, self._counted.shape[2])
        due = policy.reports(served.ravel().astype(np.int64), self._reported.reshape(flat), self._counted.reshape(flat))
        due = due.reshape(served.shape)
        due &= active
        self._reported[due] = self._counted[due] / self._epochs[due][:, None]
        self._counted[due] = self._epochs[due] = 0
        sent: npt.NDArray[np.int64] = due.sum(axis=1)
        self.has_reported |= sent > 0
        return sent

    def reported(self, names: npt.NDArray[np.int64]) -> Array:
        """Return the reported requests per epoch, [name, client]."""
        total: Array = self._reported[names].sum(axis=1)
        return total


def _draw_lookups(
    workload: Workload, demand: list[Array], followed: list[int], settings: Adaptation, rng: np.random.Generator
) -> list[Lookup]:
    """Return every lookup of the followed names, ordered by time."""
    lookups = []
    for epoch, shares in enumerate(demand):
        for name in followed:
            number = int(rng.poisson(workload.reads[name] * settings.epoch))
            times = (epoch + rng.random(number)) * settings.epoch
            clients = rng.choice(shares.shape[1], number, p=shares[name])
            lookups += [Lookup(time, client, name) for time, client in zip(times.tolist(), clients.tolist(), strict=True)]
    return sorted(lookups, key=lambda lookup: lookup.time)


def _nearest_server_rtt(followed: list[int], demand: list[Array], topology: Topology) -> list[float]:
    """Return the mean RTT in seconds to the nearest server for each epoch: a lower bound for every placement."""
    nearest = topology.rtt.min(axis=1)
    return [float((shares[followed] @ nearest).mean()) for shares in demand]

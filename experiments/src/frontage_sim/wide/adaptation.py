# SPDX-License-Identifier: Apache-2.0
"""Demand that comes from elsewhere every few epochs: how soon placement follows, and what that costs (Auspice, section 2.2.4).

Reports, plans and reconfigurations are the product's, for all names. Of some names every lookup is simulated, by routers that keep what
they know of active replicas and find out when it is stale.
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
from frontage_sim.wide.latencies import Array
from frontage_sim.wide.lookups import Clients, Lookup, Network, simulate
from frontage_sim.wide.places import Places
from frontage_sim.wide.places import places as drawn_places
from frontage_sim.wide.scenario import Adaptation, Wide
from frontage_sim.wide.schemes import LEAST, Flags, parameters, sites
from frontage_sim.wide.workload import Workload, keys, shares, workload


def run(settings: Wide) -> pl.DataFrame:
    """A row for each third of an epoch: latencies of its lookups, and messages by requests in its epoch and so far."""
    assert isinstance(settings, Adaptation)
    places = drawn_places(settings.topology.servers, settings.topology.clients, settings.seed)
    names = workload(settings.names, settings.load, places, settings.seed)
    rng = np.random.default_rng([settings.seed, 10])
    demand = _shifting(names, settings, places, rng)
    actives, overheads = _epochs(names, demand, settings, places, rng)
    followed = rng.choice(np.flatnonzero(~names.service), settings.followed, replace=False).tolist()
    lookups = _arrivals(names, demand, followed, settings, rng)
    clients = Clients(places, Routing(controllers=LEAST, ttl=settings.epoch))
    known = {name: [tuple(np.flatnonzero(chosen[name]).tolist()) for chosen in actives] for name in followed}

    def active(name: int, now: float) -> tuple[int, ...]:
        return known[name][min(int(now / settings.epoch), settings.epochs - 1)]

    took = simulate(lookups, names.guids, clients, Network(places, lambda *_: 0.0), active)
    rows = pl.DataFrame({"time": [lookup.time for lookup in lookups], "took": took})
    least = _least(followed, demand, settings, places)
    part = settings.epoch / 3
    binned = rows.group_by(slot=(pl.col("time") / part).floor().cast(pl.Int64)).agg(
        pl.col("took").mean().alias("lookup"), pl.col("took").quantile(0.9).alias("p90")
    )
    epoch = pl.col("slot") // 3
    return binned.sort("slot").select(
        ((pl.col("slot") + 0.5) * part).alias("time"),
        epoch.alias("epoch"),
        "lookup",
        "p90",
        epoch.replace_strict(range(settings.epochs), least, return_dtype=pl.Float64).alias("nearest"),
        epoch.replace_strict(range(settings.epochs), [share for share, _ in overheads], return_dtype=pl.Float64).alias("messages"),
        epoch.replace_strict(range(settings.epochs), [share for _, share in overheads], return_dtype=pl.Float64).alias(
            "messages so far"
        ),
    )


def _shifting(names: Workload, settings: Adaptation, places: Places, rng: np.random.Generator) -> list[Array]:
    """[name, client] of each epoch: where requests come from."""
    found = [names.shares]
    locality = np.where(names.service, settings.names.service_locality, settings.names.device_locality)
    for epoch in range(1, settings.epochs):
        shifts = int(epoch * settings.epoch // settings.shift) > int((epoch - 1) * settings.epoch // settings.shift)
        drawn = rng.integers(len(places.clients), size=len(names.guids))
        found.append(shares(drawn, locality, places) if shifts else found[-1])
    return found


def _epochs(
    names: Workload, demand: list[Array], settings: Adaptation, places: Places, rng: np.random.Generator
) -> tuple[list[Flags], list[tuple[float, float]]]:
    """[name, server] in each epoch; messages by requests in it, and in all so far."""
    number, servers = len(names.guids), len(places.servers)
    engine = Engine(sites(places, settings.costs.told), parameters("frontage", settings.costs, settings.seed))
    policy = Policy(controllers=LEAST)
    reconfigurer = Reconfigurer(policy)
    every = keys(names.guids)
    ring = Ring(range(servers), LEAST)
    active = np.zeros((number, servers), np.bool_)
    for name, guid in enumerate(names.guids):
        active[name, list(ring.controllers(partition(guid)))] = True
    reports = _Reports(number, servers, len(places.clients))
    found, overheads = [active], []
    for epoch in range(settings.epochs):
        rates = np.stack([names.reads, names.writes])[:, :, None] * demand[epoch]
        counted = rng.poisson(rates * settings.epoch).astype(np.float64)
        sent = reports.epoch(counted.sum(axis=0), active, places.rtt, policy)
        before = reconfigurer.overhead.messages, reconfigurer.overhead.requests
        reconfigurer.count(every, counted.sum(axis=(0, 2)).astype(np.int64), sent)
        heard = np.flatnonzero(sent)
        if len(heard):
            # Load reports have lookups and updates of a region; what share is updates, a name's own.
            where = reports.known(heard)
            where /= where.sum(axis=1, keepdims=True)
            engine.observe(Demand.dense(every[heard], names.reads[heard, None] * where, names.writes[heard, None] * where))
            engine.plan()
            rows = np.flatnonzero(reports.heard)
            wanted = active.copy()
            wanted[rows] = engine.masks(every[rows])
            due = reconfigurer.decide(every, active, wanted)
            active = np.where(due[:, None], wanted, active)
        overhead = reconfigurer.overhead
        overheads.append(((overhead.messages - before[0]) / (overhead.requests - before[1]), overhead.share))
        found.append(active)
    return found[: settings.epochs], overheads


class _Reports:
    """What active replicas have counted since their last load reports, and what these said."""

    def __init__(self, names: int, servers: int, clients: int):
        self._since: Array = np.zeros((names, servers, clients))
        self._epochs = np.zeros((names, servers))
        self._said: Array = np.zeros((names, servers, clients))
        """Requests an epoch."""
        self.heard = np.zeros(names, np.bool_)

    def epoch(self, counted: Array, active: Flags, rtt: Array, policy: Policy) -> npt.NDArray[np.int64]:
        """Of requests by [name, client], each at the nearest active replica: how many replicas of a name report now."""
        near = np.where(active[:, None], rtt, np.inf).argmin(axis=2)
        name, client = np.indices(near.shape)
        np.add.at(self._since, (name, near, client), counted)
        self._epochs += 1
        self._said[~active] = 0
        served = self._since.sum(axis=2)
        flat = (-1, self._since.shape[2])
        due = policy.reports(served.ravel().astype(np.int64), self._said.reshape(flat), self._since.reshape(flat)).reshape(
            served.shape
        )
        due &= active
        self._said[due] = self._since[due] / self._epochs[due][:, None]
        self._since[due] = self._epochs[due] = 0
        sent: npt.NDArray[np.int64] = due.sum(axis=1)
        self.heard |= sent > 0
        return sent

    def known(self, names: npt.NDArray[np.int64]) -> Array:
        """[name, client]: where requests come from, as far as reports say."""
        found: Array = self._said[names].sum(axis=1)
        return found


def _arrivals(
    names: Workload, demand: list[Array], followed: list[int], settings: Adaptation, rng: np.random.Generator
) -> list[Lookup]:
    """Every lookup of the followed names."""
    found = []
    for epoch, share in enumerate(demand):
        for name in followed:
            number = int(rng.poisson(names.reads[name] * settings.epoch))
            times = (epoch + rng.random(number)) * settings.epoch
            clients = rng.choice(share.shape[1], number, p=share[name])
            found += [Lookup(time, client, name) for time, client in zip(times.tolist(), clients.tolist(), strict=True)]
    return sorted(found, key=lambda lookup: lookup.time)


def _least(followed: list[int], demand: list[Array], settings: Adaptation, places: Places) -> list[float]:
    """Seconds to the nearest of all servers, by epoch: what no placement can go below."""
    near = places.rtt.min(axis=1)
    return [float((share[followed] @ near).mean()) for share in demand]

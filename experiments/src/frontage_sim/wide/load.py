# SPDX-License-Identifier: Apache-2.0
"""Latencies of lookups and updates against load, of one scheme (Auspice, sections 2.2.1 and 2.2.2)."""

from __future__ import annotations

from collections import deque

import numpy as np
import polars as pl

from frontage_records.routing import Routing
from frontage_sim.wide.latencies import Array
from frontage_sim.wide.lookups import FAILED, Clients, Network, at_random, simulate
from frontage_sim.wide.places import Places
from frontage_sim.wide.places import places as drawn_places
from frontage_sim.wide.scenario import Load, Wide
from frontage_sim.wide.schemes import Placed, coordinators, place
from frontage_sim.wide.servers import Servers
from frontage_sim.wide.updates import update
from frontage_sim.wide.workload import Workload, workload

_LEAST = 20
"""Lookups that are followed of every name, however few ask for it."""
_FOLLOWED = 8
"""Updates of every name."""
UPDATES = ("eventual", "eventual_everywhere", "ordered", "ordered_everywhere")
"""What is measured of an update."""


def run(settings: Wide) -> pl.DataFrame:
    """A row for each name: medians of its latencies, replicas, what failed of its requests."""
    assert isinstance(settings, Load)
    return simulated(settings, drawn_places(settings.topology.servers, settings.topology.clients, settings.seed))


def simulated(settings: Load, places: Places) -> pl.DataFrame:
    """The same where servers and clients are given: of one scheme at one load."""
    (scheme,), (load,) = settings.schemes, settings.loads
    names = workload(settings.names, load, places, settings.seed)
    placed = place(scheme, names, places, settings)
    rng = np.random.default_rng([settings.seed, 4])
    servers = Servers(names.writes @ placed.chosen, settings.costs, rng)
    servers.expect(_first(names, placed, places.rtt))
    clients = Clients(places, Routing(ttl=10 * settings.duration))
    for number, guid in enumerate(names.guids):
        known = tuple(np.flatnonzero(placed.asked[number]).tolist())
        for router in clients.routers:
            router.learn(guid, known, 0.0)
    clients.ping(0.0)
    network = Network(places, servers.wait, servers.count, placed.onward or (lambda *_: []))
    samples = _LEAST + np.rint(names.reads / names.reads.sum() * settings.samples * len(names.guids)).astype(np.int64)
    lookups = at_random(names.reads, names.shares, samples, settings.duration, rng)
    updates = _Updates(names, placed, places, servers, settings.duration, rng)
    took = np.array(simulate(lookups, names.guids, clients, network, meanwhile=updates.until))
    updates.until(settings.duration)
    order = np.argsort([lookup.name for lookup in lookups], kind="stable")
    each = np.split(took[order], np.cumsum(samples)[:-1])
    return pl.DataFrame(
        {
            "scheme": scheme,
            "load": load,
            "service": names.service,
            "reads": names.reads,
            "writes": names.writes,
            "replicas": placed.chosen.sum(axis=1),
            "lookup": [float(np.median(of)) for of in each],
            "lookup_failed": [float(np.isinf(of).mean()) for of in each],
            "update_failed": (updates.took[:, :, 2] > FAILED).mean(axis=1),
            **{what: np.median(updates.took[:, :, column], axis=1) for column, what in enumerate(UPDATES)},
        }
    )


class _Updates:
    """Followed while lookups are: what they wait is of the same servers."""

    def __init__(
        self, names: Workload, placed: Placed, places: Places, servers: Servers, duration: float, rng: np.random.Generator
    ):
        number = len(names.guids)
        self.took = np.empty((number, _FOLLOWED, len(UPDATES)))
        """[name, update, what], seconds."""
        self._places, self._servers = places, servers
        self._replicas = [np.flatnonzero(line) for line in placed.chosen]
        self._coordinators = coordinators(names.guids, placed.chosen).tolist()
        ends = names.shares.cumsum(axis=1)
        clients = (rng.random((number, _FOLLOWED, 1)) > ends[:, None]).sum(axis=2).clip(max=ends.shape[1] - 1)
        times = rng.random((number, _FOLLOWED)) * duration
        cells = [divmod(cell, _FOLLOWED) for cell in np.argsort(times, axis=None, kind="stable").tolist()]
        self._left = deque((float(times[cell]), *cell, int(clients[cell])) for cell in cells)

    def until(self, now: float) -> None:
        while self._left and self._left[0][0] <= now:
            _, name, which, client = self._left.popleft()
            replicas = self._replicas[name]
            waits = np.array([self._servers.wait(replica, now) for replica in replicas.tolist()])
            found = update(client, replicas, self._coordinators[name], self._places, waits)
            self.took[name, which] = found.eventual, found.eventual_everywhere, found.ordered, found.ordered_everywhere


def _first(names: Workload, placed: Placed, rtt: Array) -> Array:
    """Lookups a second by server, of clients that go to the nearest."""
    found = np.zeros(rtt.shape[1])
    for line, share, reads in zip(placed.asked, names.shares, names.reads, strict=True):
        near = np.where(line, rtt, np.inf).argmin(axis=1)
        found += np.bincount(near, share * reads, len(found))
    return found

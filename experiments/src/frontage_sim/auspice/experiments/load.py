# SPDX-License-Identifier: Apache-2.0
"""Latency of lookups and updates of one scheme against load (Auspice, sections 2.2.1 and 2.2.2)."""

from __future__ import annotations

from collections import deque

import numpy as np
import polars as pl

from frontage_records.routing import Routing
from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.lookups import REQUEST_TIMEOUT, Clients, Network, draw_lookups, simulate_lookups
from frontage_sim.auspice.queues import ServerQueues
from frontage_sim.auspice.scenario import AuspiceScenario, Load
from frontage_sim.auspice.schemes import Placement, coordinators, place
from frontage_sim.auspice.topology import Topology, draw_topology
from frontage_sim.auspice.updates import update_latency
from frontage_sim.auspice.workload import Workload, draw_workload

_MIN_LOOKUPS = 20
"""Minimum number of simulated lookups per name."""
_UPDATES = 8
"""Number of simulated updates per name."""
UPDATE_EVENTS = ("eventual", "eventual_everywhere", "ordered", "ordered_everywhere")
"""The events of an update whose latency is measured: the fields of `UpdateLatency`."""


def run(settings: AuspiceScenario) -> pl.DataFrame:
    """Return a row for each name: median latencies, number of replicas, and shares of failed requests."""
    assert isinstance(settings, Load)
    return run_on(settings, draw_topology(settings.topology.servers, settings.topology.clients, settings.seed))


def run_on(settings: Load, topology: Topology) -> pl.DataFrame:
    """Return the rows of one scheme at one load on the given topology."""
    (scheme,), (load,) = settings.schemes, settings.loads
    workload = draw_workload(settings.names, load, topology, settings.seed)
    placement = place(scheme, workload, topology, settings)
    rng = np.random.default_rng([settings.seed, 4])
    queues = ServerQueues(workload.writes @ placement.chosen, settings.costs, rng)
    queues.set_rates(_initial_lookup_rates(workload, placement, topology.rtt))
    clients = Clients(topology, Routing(ttl=10 * settings.duration))
    for number, guid in enumerate(workload.guids):
        entries = tuple(np.flatnonzero(placement.entries[number]).tolist())
        for router in clients.routers:
            router.learn(guid, entries, 0.0)
    clients.ping(0.0)
    network = Network(topology, queues.wait, queues.count, placement.forward or (lambda *_: []))
    samples = _MIN_LOOKUPS + np.rint(workload.reads / workload.reads.sum() * settings.samples * len(workload.guids)).astype(
        np.int64
    )
    lookups = draw_lookups(workload.reads, workload.shares, samples, settings.duration, rng)
    updates = _Updates(workload, placement, topology, queues, settings.duration, rng)
    latencies = np.array(simulate_lookups(lookups, workload.guids, clients, network, on_time=updates.advance))
    updates.advance(settings.duration)
    order = np.argsort([lookup.name for lookup in lookups], kind="stable")
    latencies_by_name = np.split(latencies[order], np.cumsum(samples)[:-1])
    return pl.DataFrame(
        {
            "scheme": scheme,
            "load": load,
            "service": workload.service,
            "reads": workload.reads,
            "writes": workload.writes,
            "replicas": placement.chosen.sum(axis=1),
            "lookup": [float(np.median(latencies)) for latencies in latencies_by_name],
            "lookup_failed": [float(np.isinf(latencies).mean()) for latencies in latencies_by_name],
            "update_failed": (updates.latencies[:, :, 2] > REQUEST_TIMEOUT).mean(axis=1),
            **{event: np.median(updates.latencies[:, :, column], axis=1) for column, event in enumerate(UPDATE_EVENTS)},
        }
    )


class _Updates:
    """The simulated updates. They run together with the lookups, because they wait in the same queues."""

    def __init__(
        self,
        workload: Workload,
        placement: Placement,
        topology: Topology,
        queues: ServerQueues,
        duration: float,
        rng: np.random.Generator,
    ):
        number = len(workload.guids)
        self.latencies = np.empty((number, _UPDATES, len(UPDATE_EVENTS)))
        """Seconds, [name, update, event]."""
        self._topology, self._queues = topology, queues
        self._replicas = [np.flatnonzero(row) for row in placement.chosen]
        self._coordinators = coordinators(workload.guids, placement.chosen).tolist()
        cumulative = workload.shares.cumsum(axis=1)
        clients = (rng.random((number, _UPDATES, 1)) > cumulative[:, None]).sum(axis=2).clip(max=cumulative.shape[1] - 1)
        times = rng.random((number, _UPDATES)) * duration
        cells = [divmod(cell, _UPDATES) for cell in np.argsort(times, axis=None, kind="stable").tolist()]
        self._pending = deque((float(times[cell]), *cell, int(clients[cell])) for cell in cells)

    def advance(self, now: float) -> None:
        """Simulate all updates that begin until ``now``."""
        while self._pending and self._pending[0][0] <= now:
            _, name, number, client = self._pending.popleft()
            replicas = self._replicas[name]
            waits = np.array([self._queues.wait(replica, now) for replica in replicas.tolist()])
            latency = update_latency(client, replicas, self._coordinators[name], self._topology, waits)
            self.latencies[name, number] = (
                latency.eventual,
                latency.eventual_everywhere,
                latency.ordered,
                latency.ordered_everywhere,
            )


def _initial_lookup_rates(workload: Workload, placement: Placement, rtt: Array) -> Array:
    """Return the lookups per second of each server if clients use the nearest entry server."""
    rates = np.zeros(rtt.shape[1])
    for entries, shares, reads in zip(placement.entries, workload.shares, workload.reads, strict=True):
        nearest = np.where(entries, rtt, np.inf).argmin(axis=1)
        rates += np.bincount(nearest, shares * reads, len(rates))
    return rates

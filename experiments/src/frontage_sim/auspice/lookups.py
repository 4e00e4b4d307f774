# SPDX-License-Identifier: Apache-2.0
"""Simulation of single lookups. The clients route with the product's code (`frontage_records.routing`); network and servers are simulated.

Each step of a lookup takes a round trip plus the waiting time at the server. If that exceeds the step's timeout, the client notices the
timeout at that time, as a real client would, and goes on to the next site.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage_records.ring import Ring
from frontage_records.routing import Question, Route, Router, Routing, Step
from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.topology import Topology

REQUEST_TIMEOUT = 10.0
"""Seconds without an answer after which a request has failed (section 2.2.1)."""
_PING_INTERVAL = 60.0
"""Seconds between a client's pings to all servers."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A simulated lookup of the name with index ``name``."""

    time: float
    client: int
    name: int
    stands_for: float = 1.0
    """Number of lookups that count at the servers."""


@dataclass(slots=True)
class _Pending:
    """A lookup without an answer."""

    lookup: Lookup
    route: Route
    step: Step | None = None
    """The step in progress."""
    latency: float = 0.0
    """Seconds that this step takes."""


class Network:
    """Latencies between clients and servers."""

    def __init__(
        self,
        topology: Topology,
        wait: Callable[[int, float], float],
        count: Callable[[int, float, float], None] = lambda *_: None,
        forward: Callable[[int, int], list[int]] = lambda *_: [],
    ):
        """``wait(server, time)``: seconds at a server. ``count(server, time, requests)`` is called for each request that arrives there.
        ``forward(name, server)``: the servers that a lookup passes after the first.
        """
        self._rtt = topology.rtt.tolist()
        self._server_rtt = topology.server_rtt.tolist()
        self._wait = wait
        self._count = count
        self._forward = forward

    def latency(self, lookup: Lookup, server: int, now: float) -> float:
        """Return the seconds from the request to ``server`` until its answer arrives, including all further servers."""
        arrival = now + self._rtt[lookup.client][server] / 2
        latency: float = self._rtt[lookup.client][server] + self._wait(server, arrival)
        self._count(server, arrival, lookup.stands_for)
        for following in self._forward(lookup.name, server):
            latency += self._server_rtt[server][following] + self._wait(following, now + latency)
            self._count(following, now + latency, lookup.stands_for)
            server = following
        return latency


class Clients:
    """The clients: a router each, which pings as often as the product's client does."""

    def __init__(self, topology: Topology, routing: Routing):
        servers = range(len(topology.servers))
        ring = Ring(servers, routing.controllers)
        self.routers = [Router(servers, routing, ring) for _ in topology.clients]
        self._rtt = topology.rtt.tolist()
        self._next_ping = 0.0

    def ping(self, now: float) -> None:
        """Let every client measure its latency to every server, if that is due."""
        if now >= self._next_ping:
            self._next_ping += _PING_INTERVAL
            for router, rtts in zip(self.routers, self._rtt, strict=True):
                for site, latency in router.latency.items():
                    latency.pinged(rtts[site])


def simulate_lookups(
    lookups: list[Lookup],
    guids: tuple[str, ...],
    clients: Clients,
    network: Network,
    active_replicas: Callable[[int, float], tuple[int, ...]] | None = None,
    on_time: Callable[[float], None] = lambda _: None,
) -> list[float]:
    """Return the seconds that each lookup takes, infinity if it fails. ``lookups`` must be ordered by time.

    ``active_replicas(name, time)``: the sites that hold a name. Other sites answer that they do not, and replica-controllers return the
    set. Without it, the clients' cached sets stay valid. ``on_time`` is called with the time of each event.
    """
    latencies = [float("inf")] * len(lookups)
    queue: list[tuple[float, int, _Pending]] = []
    for now, number, pending in _events(lookups, guids, clients, queue):
        clients.ping(now)
        on_time(now)
        lookup, route, step = pending.lookup, pending.route, pending.step
        if now - lookup.time > REQUEST_TIMEOUT:
            continue
        if step is not None:
            if pending.latency > step.timeout:
                route.on_failure(step)
            elif active_replicas is not None and step.question is Question.ACTIVES:
                route.on_replicas(step, active_replicas(lookup.name, now), now)
            elif active_replicas is not None and step.site not in active_replicas(lookup.name, now - pending.latency / 2):
                route.on_missing(step)
            else:
                route.on_answer(step, pending.latency)
                latencies[number] = now - lookup.time
                continue
        pending.step = step = route.step()
        if step is not None:
            pending.latency = network.latency(lookup, step.site, now)
            heapq.heappush(queue, (now + min(pending.latency, step.timeout), number, pending))
    return latencies


def _events(
    lookups: list[Lookup], guids: tuple[str, ...], clients: Clients, queue: list[tuple[float, int, _Pending]]
) -> Iterator[tuple[float, int, _Pending]]:
    """Yield new lookups and the ends of pending steps, ordered by time."""
    for number, lookup in enumerate(lookups):
        while queue and queue[0][0] <= lookup.time:
            yield heapq.heappop(queue)
        route = clients.routers[lookup.client].route(guids[lookup.name], lookup.time)
        yield lookup.time, number, _Pending(lookup, route)
    while queue:
        yield heapq.heappop(queue)


def draw_lookups(
    rates: Array, shares: Array, samples: npt.NDArray[np.int64], duration: float, rng: np.random.Generator
) -> list[Lookup]:
    """Return ``samples`` lookups of each name at random times from random clients. Together, they stand for all lookups of the name."""
    name = np.repeat(np.arange(len(rates)), samples)
    times = rng.random(len(name)) * duration
    cumulative = shares.cumsum(axis=1)
    client = np.minimum((rng.random(len(name))[:, None] > cumulative[name]).sum(axis=1), shares.shape[1] - 1)
    weight = (rates * duration / samples)[name]
    order = np.argsort(times, kind="stable")
    rows = zip(times[order].tolist(), client[order].tolist(), name[order].tolist(), weight[order].tolist(), strict=True)
    return [Lookup(*row) for row in rows]

# SPDX-License-Identifier: Apache-2.0
"""Lookups, one by one: the clients' routing is the product's (`frontage_records.routing`), the network and the servers are simulated.

Each step of a request's route takes a round trip and what it waits at the server. Where that is longer than the step's time-out, the
client learns of the time-out when it comes, as it would, and goes on to the next site.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage_records.ring import Ring
from frontage_records.routing import Question, Route, Router, Routing, Step
from frontage_sim.wide.latencies import Array
from frontage_sim.wide.places import Places

FAILED = 10.0
"""Seconds without an answer after which a request has failed (section 2.2.1)."""
_PINGS = 60.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Lookup:
    time: float
    client: int
    name: int
    stands_for: float = 1.0


@dataclass(slots=True)
class _Pending:
    lookup: Lookup
    route: Route
    step: Step | None = None
    latency: float = 0.0
    """Of the step that is under route."""


class Network:
    """What a request finds at a server; others than the plain one override `onward` and `active`."""

    def __init__(
        self,
        places: Places,
        wait: Callable[[int, float], float],
        count: Callable[[int, float, float], None] = lambda *_: None,
        onward: Callable[[int, int], list[int]] = lambda *_: [],
    ):
        self.rtt = places.rtt.tolist()
        self.between = places.between.tolist()
        self.wait = wait
        self.count = count
        self.onward = onward

    def latency(self, lookup: Lookup, server: int, now: float) -> float:
        """Seconds from when ``server`` is asked until its answer is there, whoever it asks in turn."""
        there = now + self.rtt[lookup.client][server] / 2
        took: float = self.rtt[lookup.client][server] + self.wait(server, there)
        self.count(server, there, lookup.stands_for)
        for following in self.onward(lookup.name, server):
            took += self.between[server][following] + self.wait(following, now + took)
            self.count(following, now + took, lookup.stands_for)
            server = following
        return took


class Clients:
    """A router each, pinged as often as the product's client does."""

    def __init__(self, places: Places, routing: Routing):
        everyone = range(len(places.servers))
        ring = Ring(everyone, routing.controllers)
        self.routers = [Router(everyone, routing, ring) for _ in places.clients]
        self._rtt = places.rtt.tolist()
        self._next = 0.0

    def ping(self, now: float) -> None:
        if now >= self._next:
            self._next += _PINGS
            for router, rtts in zip(self.routers, self._rtt, strict=True):
                for site, latency in router.latency.items():
                    latency.pinged(rtts[site])


def simulate(
    lookups: list[Lookup],
    guids: tuple[str, ...],
    clients: Clients,
    network: Network,
    actives: Callable[[int, float], tuple[int, ...]] | None = None,
    meanwhile: Callable[[float], None] = lambda _: None,
) -> list[float]:
    """How many seconds each lookup took, infinitely many if it failed; ``lookups`` are in the order of their times.

    ``actives``: where a name is at a time; who is asked elsewhere says so, and replica-controllers know. None: clients have learned it
    before, for good. ``meanwhile`` is told the time as it passes.
    """
    took = [float("inf")] * len(lookups)
    pending: list[tuple[float, int, _Pending]] = []
    for now, number, one in _events(lookups, guids, clients, pending):
        clients.ping(now)
        meanwhile(now)
        lookup, route, step = one.lookup, one.route, one.step
        if now - lookup.time > FAILED:
            continue
        if step is not None:
            if one.latency > step.timeout:
                route.on_failure(step)
            elif actives is not None and step.question is Question.ACTIVES:
                route.on_replicas(step, actives(lookup.name, now), now)
            elif actives is not None and step.site not in actives(lookup.name, now - one.latency / 2):
                route.on_missing(step)
            else:
                route.on_answer(step, one.latency)
                took[number] = now - lookup.time
                continue
        one.step = step = route.step()
        if step is not None:
            one.latency = network.latency(lookup, step.site, now)
            heapq.heappush(pending, (now + min(one.latency, step.timeout), number, one))
    return took


def _events(
    lookups: list[Lookup], guids: tuple[str, ...], clients: Clients, pending: list[tuple[float, int, _Pending]]
) -> Iterator[tuple[float, int, _Pending]]:
    """New lookups and what comes of earlier ones, in the order of time."""
    for number, lookup in enumerate(lookups):
        while pending and pending[0][0] <= lookup.time:
            yield heapq.heappop(pending)
        route = clients.routers[lookup.client].route(guids[lookup.name], lookup.time)
        yield lookup.time, number, _Pending(lookup, route)
    while pending:
        yield heapq.heappop(pending)


def at_random(
    rates: Array, shares: Array, samples: npt.NDArray[np.int64], duration: float, rng: np.random.Generator
) -> list[Lookup]:
    """``samples`` lookups of each name at times and from clients drawn, each standing for as many as the name's rate says."""
    name = np.repeat(np.arange(len(rates)), samples)
    times = rng.random(len(name)) * duration
    ends = shares.cumsum(axis=1)
    client = np.minimum((rng.random(len(name))[:, None] > ends[name]).sum(axis=1), shares.shape[1] - 1)
    weight = (rates * duration / samples)[name]
    order = np.argsort(times, kind="stable")
    rows = zip(times[order].tolist(), client[order].tolist(), name[order].tolist(), weight[order].tolist(), strict=True)
    return [Lookup(*row) for row in rows]

# SPDX-License-Identifier: Apache-2.0
"""Load: visits of the page at seeded times, over the Frontage network or over the plain one."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontage_demo.artemis.measure import CACHED, HIT_RATE
from frontage_testbed.nodes import NodeError

from .clients import PageVisit, by_artemis, by_dns
from .testbed import EverythingTestbed

RATE = 0.5
"""Visits per second of each client."""
POLL = 0.005
"""Seconds between two checks for visits to begin or to collect."""


@dataclass(frozen=True)
class Arrival:
    """The beginning of a visit."""

    at: float
    """Seconds since the load began."""
    client: str
    label: str
    """Label of the name that DNS clients resolve: new names are not in the resolver's cache."""


@dataclass(frozen=True)
class Flow:
    """One object of a visit. Times are in seconds since the visit began."""

    path: str
    bytes: int
    asked: float
    """Time of the request. The page itself is requested once the name is resolved and the connection is set up."""
    total: float
    """Time of the last byte."""
    error: str | None
    """The reason why the object did not arrive unchanged."""

    @property
    def seconds(self) -> float:
        """Flow completion time."""
        return self.total - self.asked


@dataclass(frozen=True)
class Finished:
    """A visit that has ended."""

    client: str
    began: float
    """Seconds since the load began."""
    ended: float
    address: str
    """The server's last address that the client used; empty if it had no connection."""
    flows: tuple[Flow, ...]
    error: str | None
    """The reason why the visit failed."""

    @property
    def seconds(self) -> float:
        """Seconds from the beginning of the visit, with the name's resolution, to the last object."""
        return max((flow.total for flow in self.flows), default=0.0)


def plan(clients: Sequence[str], begin: float, end: float, seed: int, rate: float = RATE) -> list[Arrival]:
    """Return Poisson arrivals of all clients between two times; a share `HIT_RATE` of the visits uses a cached name."""
    arrivals: list[Arrival] = []
    for client in clients:
        source, at = random.Random(f"visits {seed} {client} {begin}"), begin
        while (at := at + source.expovariate(rate)) < end:
            label = CACHED if source.random() < HIT_RATE else f"n{seed}-{len(arrivals)}"
            arrivals.append(Arrival(at, client, label))
    return in_order(arrivals)


def in_order(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return arrivals in the order of their times."""
    return sorted(arrivals, key=lambda arrival: arrival.at)


def run(testbed: EverythingTestbed, arrivals: Sequence[Arrival]) -> list[Finished]:
    """Begin all visits at their times, and return them once all have ended.

    Clients hash the name if the sites have dispatchers; otherwise they use DNS.
    """
    page, hashed = testbed.page, testbed.parts.steering
    paths, digests = list(page), {path: item.sha256 for path, item in page.items()}
    began, running, finished = time.monotonic(), dict[PageVisit, tuple[Arrival, float]](), list[Finished]()
    waiting = list(reversed(arrivals))
    while waiting or running:
        now = time.monotonic() - began
        while waiting and waiting[-1].at <= now:
            arrival = waiting.pop()
            start = time.monotonic() - began
            visit = by_artemis(testbed, arrival.client, paths) if hashed else by_dns(testbed, arrival.client, paths, arrival.label)
            running[visit] = arrival, start
        for visit in [visit for visit in running if not visit.runs]:
            arrival, start = running.pop(visit)
            finished.append(_finished(visit, arrival, start, time.monotonic() - began, digests))
        time.sleep(POLL)
    return finished


def _finished(visit: PageVisit, arrival: Arrival, began: float, ended: float, digests: Mapping[str, str]) -> Finished:
    try:
        seen = visit.finish()
    except NodeError as error:
        return Finished(arrival.client, began, ended, "", (), str(error)[-300:])
    flows = tuple(_flow(report, digests) for report in seen.objects)
    errors = [flow.error for flow in flows if flow.error]
    return Finished(arrival.client, began, ended, seen.last_address, flows, errors[0] if errors else None)


def _flow(report: Mapping[str, Any], digests: Mapping[str, str]) -> Flow:
    path = "/" + report["url"].split("/", 3)[3]
    error = report.get("error")
    if error is None and report.get("sha256") != digests[path]:
        error = f"status {report['status']}: the bytes are not those of the object"
    seconds = report["seconds"]
    return Flow(path, int(report.get("bytes") or 0), seconds.get("asked") or 0.0, seconds["total"], error)

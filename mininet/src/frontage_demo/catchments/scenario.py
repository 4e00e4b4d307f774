# SPDX-License-Identifier: Apache-2.0
"""A run: the catchments at first, and what clients notice when a site drains, loses its replicas, or dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontage_demo.artemis.measure import by_artemis, site_of_cookie
from frontage_testbed.internet.addresses import client_address
from frontage_testbed.internet.plan import CLIENTS, SYSTEMS, UPLINKS
from frontage_testbed.internet.routers import trace, upstream_of
from frontage_testbed.wan.addresses import SERVICE_PREFIX

from . import held
from .attempts import Attempt, Attempts
from .entries import Entries, Entry
from .testbed import CatchmentTestbed

FIRST = {"Germany": 1, "United Kingdom": 2, "Ohio": 2, "Osaka": 3}
WITHOUT = {
    1: FIRST | {"Germany": 2},
    2: FIRST | {"United Kingdom": 1, "Ohio": 3},
    3: FIRST | {"Osaka": 2},
}
"""The catchments without the announcement of each site."""
FRANKFURT, VIRGINIA, TOKYO = 1, 2, 3
HOLDING = ("Germany", "United Kingdom", "Osaka")
"""The clients with open connections: those that the site that dies does not serve."""
NOTHING: dict[str, object] = {"clients": [], "services": [], "mapping": []}
"""A mapping that leads no service anywhere."""
CALM = 1.5
"""Seconds after each event."""
BURST, BURST_SECONDS = 24, 0.6
"""Connections that each client opens before a site dies, and the seconds within which they begin."""
LATE = 0.9
"""Seconds above a connection's time before the events that prove a retransmitted first flight (RFC 9002, section 6.2.2)."""


@dataclass(frozen=True)
class Catchment:
    """The way of a client to the service address before the events."""

    site: int | None
    """The site where its packets end, by the routers' forwarding tables."""
    as_path: list[int]
    """The AS path of the best route of its router, with its own system."""
    announced_by: int | None
    """The site that announced this route."""
    forwarded: list[int]
    """The systems on the way by the forwarding tables."""
    traced: list[int]
    """The systems that answered its probes with short hop limits."""
    served: int
    """The site that served it."""
    nearest: int
    """The site with the shortest round-trip time."""
    rtts: list[float]
    """Round-trip times in ms to the sites, over the unicast routes."""

    @property
    def additional(self) -> float:
        """The milliseconds by which the site of the catchment is farther than the nearest one (Table 6)."""
        return 0.0 if self.site is None else self.rtts[self.site - 1] - min(self.rtts)


def catchment(testbed: CatchmentTestbed, client: str) -> Catchment:
    """Return the way of a client, which connects once."""
    forwarded, site = testbed.routers.path(client, testbed.service_address)
    as_path = testbed.routers.as_path(client, SERVICE_PREFIX)
    ids = {one.location: one.id for one in testbed.sites}
    rtts = [testbed.rtt(client, uplink.site) for uplink in UPLINKS]
    return Catchment(
        site=site,
        as_path=as_path,
        announced_by=upstream_of(as_path),
        forwarded=forwarded,
        traced=trace(testbed.client(client), testbed.service_address),
        served=ids[site_of_cookie(testbed, by_artemis(testbed, client)["preferred"])],
        nearest=1 + min(range(len(rtts)), key=rtts.__getitem__),
        rtts=rtts,
    )


@dataclass(frozen=True)
class Event:
    """A change of the catchments."""

    changed: float
    """Seconds until the forwarding tables had the new catchments."""
    attempts: int
    """Connections that began between the event and the next one, and were not in progress at that moment."""
    failed: list[str]
    """The clients of those that failed."""
    late: dict[str, float]
    """The longest handshake of those that waited for a retransmission, in seconds, by client."""
    late_attempts: int
    last_before: dict[str, float]
    """By client that moved: seconds from the event to its last packet that enters the site of its old catchment."""
    served: dict[str, list[int]]
    """The sites that served each client."""
    in_progress: dict[str, list[int]]
    """By client: the connections from since the event before that were in progress at this one, and how many of them failed."""


@dataclass(frozen=True)
class Run:
    """The result."""

    catchments: dict[str, Catchment]
    entered: dict[str, list[int]]
    """The sites that packets to the service address entered before the events, by client, as captured."""
    events: dict[str, Event]
    held: list[dict[str, Any]]
    """The connections that were open during all events."""
    text: str
    """The printed status of the site without replicas and mapping."""
    status: dict[str, Any]
    """The part about BGP of the controllers' status after some of the events."""


@dataclass(frozen=True)
class Mark:
    """The times of an event, and the catchments that it changes."""

    began: float
    """Seconds since the epoch."""
    changed: float
    before: Mapping[str, int]
    after: Mapping[str, int]


class Story:
    """The events of a run."""

    def __init__(self, testbed: CatchmentTestbed, attempts: Attempts) -> None:
        self.testbed = testbed
        self._attempts = attempts
        self.marks: dict[str, Mark] = {}
        self.status: dict[str, Any] = {}
        self.text = ""
        """The printed status of the site without replicas and mapping."""
        self._catchments: Mapping[str, int] = FIRST

    def event(self, name: str, act: Callable[[], object], after: Mapping[str, int]) -> None:
        """Do something, and wait until the catchments are `after`."""
        began = time.time()
        act()
        self.testbed.seconds_until(after)
        self.marks[name] = Mark(began, time.time() - began, self._catchments, after)
        self._catchments = after
        time.sleep(CALM)

    def run(self) -> None:
        """Let all events happen."""
        testbed, sites = self.testbed, self.testbed.bgp_sites
        self.event("Frankfurt's controller restarts", sites[FRANKFURT].restart_controller, FIRST)
        drain = ("drain-switch", sites[FRANKFURT].switch_name)
        self.event("Frankfurt drains", lambda: sites[FRANKFURT].frontage(*drain, "--wait", "0"), WITHOUT[FRANKFURT])
        self.status["Frankfurt drains"] = sites[FRANKFURT].bgp()
        self.event("the drain is undone", lambda: sites[FRANKFURT].frontage(*drain, "--undo"), FIRST)

        testbed.remap((), redundancy=1, avoiding={TOKYO})
        self.event("Tokyo loses its replica", lambda: sites[TOKYO].frontage("drain", "s3-replica"), FIRST)
        self.event("Tokyo loses its mapping", lambda: sites[TOKYO].install_mapping(NOTHING, 1), WITHOUT[TOKYO])
        self.status["Tokyo loses its mapping"] = sites[TOKYO].bgp()
        self.text = sites[TOKYO].frontage("status")
        self.event("Tokyo has both again", self._restore_tokyo, FIRST)

        testbed.remap((), redundancy=2)
        self._attempts.burst(BURST, BURST_SECONDS)
        self.event("Virginia dies", self.testbed.bgp_sites[VIRGINIA].kill, WITHOUT[VIRGINIA])
        self.event("the next mapping", lambda: testbed.remap({VIRGINIA}, redundancy=1), WITHOUT[VIRGINIA])

    def _restore_tokyo(self) -> None:
        self.testbed.bgp_sites[TOKYO].frontage("drain", "s3-replica", "--undo")
        self.testbed.remap((), redundancy=1)


def play(testbed: CatchmentTestbed, folder: Path) -> Run:
    """Run all events in a testbed that has just come up."""
    testbed.wait_until_converged(FIRST)
    entries = Entries(testbed, folder)
    with ThreadPoolExecutor() as pool:
        ways = list(pool.map(lambda client: catchment(testbed, client), CLIENTS))
    open_ones = held.open_connections(testbed, HOLDING)
    attempts = Attempts(testbed, list(CLIENTS))
    attempts.start()
    time.sleep(CALM)
    story = Story(testbed, attempts)
    story.run()
    still_open = [one.download.runs for one in open_ones]
    done, seen = attempts.stop(), entries.stop()
    closed = held.close(testbed, open_ones)
    first = next(iter(story.marks.values())).began
    ids = {site.location: site.id for site in testbed.sites}
    descriptions = [
        {"client": one.client, "program": one.program, "was_open": was_open, "site": ids.get(b.site or ""), "whole": b.whole}
        | {"before": b.before, "during": _packets(seen, one, first), "log": b.log}
        for (one, b), was_open in zip(closed, still_open, strict=True)
    ]
    return Run(
        catchments=dict(zip(CLIENTS, ways, strict=True)),
        entered={client: sorted({e.site for e in seen if e.client == client and e.at < first}) for client in CLIENTS},
        events=_events(story.marks, done, seen),
        held=descriptions,
        text=story.text,
        status=story.status,
    )


def _events(marks: Mapping[str, Mark], done: Sequence[Attempt], seen: Sequence[Entry]) -> dict[str, Event]:
    """Return what clients observed of each event until the next one."""
    first = next(iter(marks.values())).began
    usual = {client: min(a.setup for a in done if a.client == client and a.begun < first and a.site) for client in CLIENTS}
    ends = [*(mark.began for mark in list(marks.values())[1:]), time.time()]
    events = {}
    previous = 0.0
    for (name, mark), until in zip(marks.items(), ends, strict=True):
        during = [a for a in done if mark.began <= a.begun < until and (a.ended < until or until == ends[-1])]
        slow = [(a.client, a.setup) for a in during if a.site is not None and a.setup > usual[a.client] + LATE]
        moved = [client for client in CLIENTS if mark.before[client] != mark.after[client]]
        events[name] = Event(
            changed=mark.changed,
            attempts=len(during),
            failed=[a.client for a in during if a.site is None],
            late=dict(sorted(slow, key=lambda one: one[1])),
            late_attempts=len(slow),
            last_before={c: _last(seen, c, mark.before[c], mark.began, until) for c in moved},
            served={c: sorted({a.site for a in during if a.client == c and a.site}) for c in CLIENTS},
            in_progress=_in_progress(done, previous, mark.began),
        )
        previous = mark.began
    return events


def _in_progress(done: Sequence[Attempt], since: float, moment: float) -> dict[str, list[int]]:
    """Return the connections of each client that have begun since a time and were in progress at a later one, and the failed ones."""
    found = {client: [a for a in done if a.client == client and since <= a.begun < moment < a.ended] for client in CLIENTS}
    return {client: [len(those), sum(a.site is None for a in those)] for client, those in found.items()}


def _packets(seen: Sequence[Entry], one: held.Held, first: float) -> int:
    """Return the packets that a host with an open connection sent to the service address since the first event."""
    source = client_address(SYSTEMS[CLIENTS[one.client]], one.host)
    return sum(entry.source == source and entry.at >= first for entry in seen)


def _last(seen: Sequence[Entry], client: str, site: int, began: float, until: float) -> float:
    """Return the seconds from an event to a client's last packet that enters a site before the next event."""
    return max((e.at - began for e in seen if e.client == client and e.site == site and began <= e.at < until), default=0.0)

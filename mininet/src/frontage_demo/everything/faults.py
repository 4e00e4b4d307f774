# SPDX-License-Identifier: Apache-2.0
"""Every fault during load: a real server, a switch, a controller, a dispatcher, a balancer and a whole site fail, while the
demand moves from one site to the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address

from frontage.cookie import CookieKey
from frontage_demo.artemis import siteconfig
from frontage_demo.artemis.names import ZONE

from .addresses import balancers, edges, real_servers
from .load import RATE, Arrival, Finished, in_order, plan, run
from .testbed import LOADED, EverythingTestbed

EPOCH = 10.0
"""Seconds per epoch of placement."""
PLACEMENT = {
    "epoch": EPOCH,
    "services": [{"name": ZONE}],
    "sites": [{"site": site, "capacity": 1000.0} for site in (1, 2)],
    "min_replicas": 1,
    "max_replicas": 1,
    "requests": 2,
    "share": 1.0,
    "drain": EPOCH,
}
FIRST, SECOND = ("Germany", "Ireland"), ("N. Virginia", "Ohio")
"""Clients with most visits before and after the demand moves."""
SHARE = 0.3
"""Share of the other runs' visits: while a switch has failed, the other one of the only active site has room for them."""
BUSY, QUIET = 1.8 * SHARE * RATE, 0.2 * SHARE * RATE
"""Visits per second of a client with most and with few visits."""
MOVE = 0.4
"""Share of the run's length after which the demand moves."""
TAKEOVER = {"balancer": 5.0, "site": 2.5 * EPOCH}
"""Seconds after the failure within which first flights must go to other servers."""
_KEY = CookieKey(siteconfig.KEY["id"], bytes.fromhex(str(siteconfig.KEY["secret"])))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fault:
    """A fault as it happened."""

    name: str
    kind: str
    """`balancer` and `site` lose connections; all other kinds must not."""
    sids: frozenset[int]
    """SIDs of the balancers that failed."""
    at: float
    """Seconds since the load began."""


@dataclass
class Timeline:
    """Faults in their order, by a thread beside the load."""

    testbed: EverythingTestbed
    seconds: float
    """Length of the load."""
    faults: list[Fault] = field(default_factory=list)
    serving: list[tuple[float, list[int]]] = field(default_factory=list)
    """Each change of the sites that get first flights: its time and the sites' ids."""
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._watching = True
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._play, self._watch)]

    def start(self) -> None:
        """Begin; the load begins at the same time."""
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait for the last fault. Raises the error of a fault that could not be caused."""
        self._threads[0].join()
        self._watching = False
        self._threads[1].join()
        if self.error is not None:
            raise self.error

    @property
    def _now(self) -> float:
        return time.monotonic() - self._began

    def _play(self) -> None:
        try:
            for share, act in self._acts():
                time.sleep(max(0.0, share * self.seconds - self._now))
                act()
        except BaseException as error:
            self.error = error

    def _watch(self) -> None:
        while self._watching:
            placed = self.testbed.placed()
            sites = sorted(placed.serving) if placed else []
            if sites and (not self.serving or self.serving[-1][1] != sites):
                self.serving.append((self._now, sites))
            time.sleep(0.5)

    def _acts(self) -> Sequence[tuple[float, Callable[[], None]]]:
        one, two = (self.testbed.fleet_site(location) for location in LOADED.sites)
        real, edge = real_servers(one.addresses)[0].name, edges(one.addresses)[1]
        balancer = balancers(two.addresses)[0]

        def switch_fails() -> None:
            self._note("a switch of the first site", "switch")
            one.kill_one(edge.name)
            one.use(edges(one.addresses)[:1])

        def switch_returns() -> None:
            one.start_edge(edge)
            one.wait_until_programmed(edge)
            one.use(edges(one.addresses))

        def site_fails() -> None:
            self._note("the second site with all its machines", "site", *(b.sid for b in balancers(two.addresses)))
            two.kill()
            # Its routes are withdrawn.
            self.testbed.wan.route_anycast(dict.fromkeys(self.testbed.routes, LOADED.sites[0]))

        def note_and(name: str, kind: str, act: Callable[[], None], *sids: int) -> Callable[[], None]:
            def noted() -> None:
                self._note(name, kind, *sids)
                act()

            return noted

        return (
            (0.08, note_and("a real server of the first site", "real server", lambda: one.kill_one(real))),
            (0.16, lambda: one.restart_real_server(real)),
            (0.18, switch_fails),
            (0.26, switch_returns),
            (0.32, note_and("the first site's controller restarts", "controller", one.restart_controller)),
            (0.36, note_and("the first site's dispatcher restarts", "dispatcher", one.restart_dispatcher)),
            (MOVE, lambda: self._note("the demand moves", "demand")),
            (0.70, note_and("a balancer of the second site", "balancer", lambda: two.kill_one(balancer.name), balancer.sid)),
            (0.76, lambda: two.restart_balancer(balancer.name)),
            (0.82, site_fails),
        )

    def _note(self, name: str, kind: str, *sids: int) -> None:
        self.faults.append(Fault(name, kind, frozenset(sids), self._now))


@dataclass(frozen=True)
class Loss:
    """Visits around one fault."""

    fault: Fault
    during: int
    """Visits in progress when it happened."""
    on_failed_server: int
    """Failed visits whose connection was to a server that failed."""
    before_takeover: int
    """Failed visits that began after the failure while first flights still went to the failed server."""


@dataclass(frozen=True)
class Result:
    """A run with all faults."""

    visits: int
    objects: int
    losses: tuple[Loss, ...]
    unexplained: tuple[Finished, ...]
    """Failed visits that belong to no failed server."""
    serving: tuple[tuple[float, list[int]], ...]


def arrivals(seconds: float, seed: int) -> list[Arrival]:
    """Return visits whose demand moves from one site's clients to the other's."""
    move = MOVE * seconds
    parts = [(FIRST, 0.0, move, BUSY), (SECOND, 0.0, move, QUIET), (FIRST, move, seconds, QUIET), (SECOND, move, seconds, BUSY)]
    return in_order(arrival for clients, begin, end, rate in parts for arrival in plan(clients, begin, end, seed, rate))


def sid_of(address: str) -> int | None:
    """Return the SID in a cookie address; None for any other address."""
    if not address:
        return None
    cookie = _KEY.open_ip6(int(IPv6Address(address)) & (1 << 64) - 1)
    return cookie.sid if cookie else None


def cause(visit: Finished, faults: Sequence[Fault]) -> tuple[Fault, bool] | None:
    """Return the fault that explains a failed visit, and whether its connection was to a failed server when that happened."""
    sid = sid_of(visit.address)
    for fault in faults:
        if visit.began <= fault.at <= visit.ended and sid in fault.sids:
            return fault, True
    for fault in faults:
        late = fault.at <= visit.began <= fault.at + TAKEOVER.get(fault.kind, 0.0)
        if fault.sids and late and (sid is None or sid in fault.sids):
            return fault, False
        # A first flight on its way to a server that fails has no address of it yet.
        if fault.sids and sid is None and visit.began <= fault.at <= visit.ended:
            return fault, True
    return None


def classified(visits: Sequence[Finished], timeline: Timeline) -> Result:
    """Return the failed visits by fault."""
    failed = [(visit, cause(visit, timeline.faults)) for visit in visits if visit.error]
    losses = []
    for fault in timeline.faults:
        own = [found[1] for _, found in failed if found and found[0] is fault]
        during = sum(visit.began <= fault.at <= visit.ended for visit in visits)
        losses.append(Loss(fault, during, sum(own), len(own) - sum(own)))
    unexplained = tuple(visit for visit, found in failed if found is None)
    objects = sum(len(visit.flows) for visit in visits)
    return Result(len(visits), objects, tuple(losses), unexplained, tuple(timeline.serving))


def endure(testbed: EverythingTestbed, seconds: float, seed: int) -> Result:
    """Load a testbed with `PLACEMENT` for this time with all faults."""
    timeline = Timeline(testbed, seconds)
    timeline.start()
    visits = run(testbed, arrivals(seconds, seed))
    timeline.finish()
    return classified(visits, timeline)

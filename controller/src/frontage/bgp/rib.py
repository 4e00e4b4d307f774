# SPDX-License-Identifier: Apache-2.0
"""The routes of the routers of one switch (RFC 4271, section 3.2: Adj-RIB-In), without I/O.

A router's routes become stale when its session ends but the router may still forward: because FRR restarts, or because the router
restarts gracefully (RFC 4724). Stale routes stay until the router has announced its routes again, at most for `stale_time`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

from frontage.bgp.acceptance import Acceptance, Rejection
from frontage.bgp.bmp import Event, Malformed, Monitored, PeerDown, PeerUp
from frontage.bgp.prefixes import Prefixes
from frontage.bgp.router import Router
from frontage.bgp.selection import best
from frontage.bgp.update import Path
from frontage.config.schema import Config
from frontage.fields import IPAddress, IPNetwork
from frontage.learned import Learned, NextHops


class Rib:
    """The routes of the routers of one switch, and the learned routes that follow from them."""

    def __init__(self, config: Config, now: float):
        self.routers: dict[IPAddress, Router] = {}
        self.rejected: Counter[tuple[IPAddress, Rejection]] = Counter()
        """Rejected announcements by router and reason."""
        self.version = 0
        """Grows with every change of what `learned` returns."""
        self._selected: dict[IPNetwork, NextHops] = {}
        self._changed: set[IPNetwork] = set()
        self._is_complete = False
        """True once every router has announced its routes, or had the time to do so."""
        self._seen: set[IPNetwork] = set()
        """The announced prefixes, until the routes are complete."""
        self._falling: dict[IPAddress, Router] = {}
        """Routers whose session has ended, and whose routes are still there."""
        self._prefixes = Prefixes()
        self.follow(config, now)

    def follow(self, config: Config, now: float) -> None:
        """Change the configuration. Routes that are no longer accepted go, and new ones have to be read again."""
        assert config.bgp is not None
        assert config.bgp.learn is not None
        self._learn, self._asn = config.bgp.learn, config.bgp.asn
        self._acceptance = Acceptance(config)
        wanted = {neighbor.address for neighbor in config.learned_from}
        for address in [a for a in self.routers if a not in wanted]:
            self._drop(self.routers.pop(address))
        for address in wanted - self.routers.keys():
            self.routers[address] = Router(address, now + self._learn.stale_time)
        for router in self.routers.values():
            for prefix in [p for p, (path, _) in router.paths.items() if self._acceptance.reject(p, path)]:
                self._remove(router, prefix)
        self._changed |= self._prefixes.all

    def disconnected(self, now: float) -> None:
        """FRR has ended the connection: it may restart, while the routers still forward."""
        for router in self.routers.values():
            router.waits_for_frr |= router.is_up
            router.expect_return(now, self._learn.stale_time)

    def is_up(self, address: IPAddress) -> bool:
        """Return whether there is a session with a router."""
        router = self.routers.get(address)
        return router is not None and router.is_up

    def lost(self, address: IPAddress, now: float) -> bool:
        """FRR has lost a session with a router since it started. Return whether this is new: then the router's routes go."""
        router = self.routers.get(address)
        if router is None or router.is_up or not router.waits_for_frr:
            return False
        router.waits_for_frr = False
        self._fall(router, now)
        return True

    def process(self, event: Event, now: float) -> None:
        """Apply a message. Messages about unknown routers are ignored."""
        router = self.routers.get(event.peer)
        if router is None:
            return
        match event:
            case PeerUp():
                router.on_up(event.graceful_restart, now)
                self._falling.pop(router.address, None)
                self.version += 1
                self._forget_lost(router)
            case PeerDown():
                # FRR reports sessions that are not established yet as ended, too.
                if router.is_up:
                    self._on_down(router, event, now)
            case Malformed():
                self.rejected[router.address, Rejection.MALFORMED] += 1
            case Monitored() if router.is_up:
                router.on_message(now)
                for prefix in event.update.withdrawn:
                    self._remove(router, prefix)
                if event.update.path is not None:
                    path = event.update.path.without_own(self._asn)
                    for prefix in event.update.reached:
                        self._add(router, prefix, path)

    def _on_down(self, router: Router, event: PeerDown, now: float) -> None:
        if event.is_restart and self._learn.stale_time:
            router.expect_return(now, router.restart_seconds(self._learn.stale_time))
            router.restarts = True
        else:
            self._fall(router, now)

    def _fall(self, router: Router, now: float) -> None:
        router.fall(now)
        self._falling[router.address] = router
        self.version += 1

    def _forget_lost(self, router: Router) -> None:
        """Remove the stale routes of an IP version for which a restarted router did not go on forwarding (RFC 4724, 4.2)."""
        restart = router.graceful_restart
        if restart is not None and restart.is_restarting:
            self._drop(router, lambda prefix, epoch: epoch != router.epoch and prefix.version not in restart.preserved)

    def route_of(self, address: IPAddress) -> IPNetwork | None:
        """Return one of the routes of a router, or None."""
        router = self.routers.get(address)
        return next(iter(router.paths), None) if router is not None else None

    def unconfirmed(self, now: float) -> Iterator[tuple[IPAddress, IPNetwork]]:
        """Yield the restarted routers that would settle now, and one stale route of each. `postpone` lets them settle later."""
        for router in self.routers.values():
            if router.restarts and router.is_up and router.settles <= now < router.deadline:
                stale = (prefix for prefix, (_, epoch) in router.paths.items() if epoch != router.epoch)
                if (prefix := next(stale, None)) is not None:
                    yield router.address, prefix

    def postpone(self, address: IPAddress, now: float) -> None:
        """Let a router settle later, because it has not announced all routes yet."""
        self.routers[address].on_message(now)

    def expire(self, now: float) -> None:
        """Remove stale routes whose time is over."""
        for router in self.routers.values():
            if router.is_up and not router.is_settled and now >= router.settles:
                router.settle()
                self._drop_stale(router)
                self.version += 1
            elif not router.is_up and now >= router.deadline and router.address not in self._falling:
                router.deadline = math.inf
                self._drop(router)
                self.version += 1
        if not self._is_complete and all(router.is_done for router in self.routers.values()):
            self._is_complete = True
            self._seen.clear()
            self.version += 1

    @property
    def has_fallen(self) -> bool:
        """True if the session of a router has ended, and its routes are still there."""
        return bool(self._falling)

    def take_down(self) -> None:
        """Remove the routes of routers whose session has ended.

        Until then, `learned` only excludes these routers from groups, which needs few writes.
        """
        falling, self._falling = self._falling, {}
        for router in falling.values():
            router.deadline = math.inf
            self._drop(router)
        self.version += bool(falling)

    @property
    def due(self) -> float:
        """The time at which `expire` has something to do."""
        return min((router.due for router in self.routers.values()), default=math.inf)

    @property
    def wants_refresh(self) -> bool:
        """True if routes were rejected for the limit, and there is room now."""
        return self._prefixes.wants_refresh(self._learn)

    def refreshing(self) -> None:
        """All routes are about to be read again."""
        self._prefixes.refreshing()

    def learned(self) -> Learned:
        """Return the best routes."""
        for prefix in self._changed:
            hops = best(self.paths(prefix), self._learn.max_paths)
            if hops:
                self._selected[prefix] = hops
            else:
                self._selected.pop(prefix, None)
        self._changed.clear()
        withdrawn = frozenset(self._seen - self._selected.keys())
        return Learned(dict(self._selected), frozenset(self._falling), self._is_complete, withdrawn)

    def paths(self, prefix: IPNetwork) -> Iterator[Path]:
        """Yield the accepted paths to a prefix."""
        for router in self.routers.values():
            if (found := router.paths.get(prefix)) is not None:
                yield found[0]

    @property
    def counts(self) -> dict[int, int]:
        """The number of learned prefixes, by IP version."""
        return dict(self._prefixes.by_version)

    def _add(self, router: Router, prefix: IPNetwork, path: Path) -> None:
        reason = self._acceptance.reject(prefix, path)
        if reason is None and self._prefixes.is_over_limit(prefix, self._learn):
            reason = Rejection.LIMIT
        if reason is not None:
            self.rejected[router.address, reason] += 1
            self._remove(router, prefix)
            return
        if not self._is_complete:
            self._seen.add(prefix)
        before = router.paths.get(prefix)
        router.paths[prefix] = path, router.epoch
        if before is None:
            self._prefixes.add(prefix)
        if before is None or before[0] != path:
            self._changed.add(prefix)
            self.version += 1

    def _remove(self, router: Router, prefix: IPNetwork) -> None:
        if router.paths.pop(prefix, None) is None:
            return
        self._prefixes.remove(prefix)
        self._changed.add(prefix)
        self.version += 1

    def _drop(self, router: Router, condition: Callable[[IPNetwork, int], bool] = lambda _prefix, _epoch: True) -> None:
        """Remove the routes of a router whose prefix and session meet a condition."""
        for prefix in [prefix for prefix, (_, epoch) in router.paths.items() if condition(prefix, epoch)]:
            self._remove(router, prefix)

    def _drop_stale(self, router: Router) -> None:
        """Remove the routes of earlier sessions."""
        self._drop(router, lambda _, epoch: epoch != router.epoch)

    def lookup(self, address: IPAddress) -> IPNetwork | None:
        """Return the longest learned prefix that contains an address."""
        return self._prefixes.longest(address)

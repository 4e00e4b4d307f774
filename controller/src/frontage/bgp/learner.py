# SPDX-License-Identifier: Apache-2.0
"""Reads what routers announce from FRR by BMP, and gives each switch its routes.

BMP reports every router's routes separately. So each switch selects among its own routers, although one FRR serves all switches.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from frontage.bgp import bmp
from frontage.bgp.acceptance import Rejection
from frontage.bgp.frr import ESTABLISHED, Frr, FrrError, SessionState
from frontage.bgp.rib import Rib
from frontage.bgp.update import MalformedError
from frontage.config.bgp import Learn
from frontage.config.schema import Config
from frontage.fields import IPAddress, IPNetwork, split_listen
from frontage.learned import NOTHING
from frontage.service.controller import Controller
from frontage.service.fleet import Fleet
from frontage.state.errors import ReconcileError
from frontage.state.recovery import UNKNOWN

log = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between looks at the configuration, and between attempts to connect."""
CONNECT_TIMEOUT = 5.0
GATHER_TIME = 0.05
"""Seconds for which changes are gathered before a switch gets them."""
GROUPS_TIMEOUT = 1.0
"""Seconds that a switch may take to remove a router from its groups, before the routes of the router change."""
READ_LIMIT = 1 << 20
"""Bytes that are buffered of the connection to FRR."""


class Learner:
    """Learns routes for the switches of a fleet, while this controller is the primary of one."""

    def __init__(self, fleet: Fleet, sessions: Callable[[], Mapping[IPAddress, SessionState]]):
        """``sessions`` returns the sessions as FRR's shell shows them."""
        self.ribs: dict[str, Rib] = {}
        """By name of the switch."""
        self.error: str | None = None
        """Why there is no connection to FRR."""
        self._fleet = fleet
        self._sessions = sessions
        self._followed: tuple[Config, object] | None = None
        self._published: dict[str, tuple[Controller, int]] = {}
        """The controllers that have the routes of a version."""
        self._changed = asyncio.Event()
        self._urgent = asyncio.Event()

    async def run(self) -> None:
        """Follow the configuration and FRR until cancelled."""
        publishing = asyncio.create_task(self._publish())
        try:
            while not publishing.done():
                learn = await self._follow()
                if learn is not None:
                    try:
                        await self._read(learn)
                    except (OSError, MalformedError, asyncio.IncompleteReadError, TimeoutError) as error:
                        self._report(learn, error)
                await asyncio.sleep(INTERVAL)
            publishing.result()
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)

    async def _follow(self) -> Learn | None:
        """Adopt the configuration, and return its section if routes are to be read."""
        config = self._fleet.config
        learn = config.bgp.learn if config.bgp is not None else None
        if learn is None or not self._fleet.primary:
            for name, controller in self._fleet.controllers.items():
                nothing = NOTHING if learn is None else UNKNOWN
                if controller.learned is not nothing and (name in self.ribs or learn is None):
                    await controller.learn(nothing)
            self.ribs, self._followed, self._published, self.error = {}, None, {}, None
            return None
        if self._followed is None or self._followed[0] is not config:
            now, switches = time.monotonic(), {own.device.name: own for own in config.switches}
            self.ribs = {name: rib for name, rib in self.ribs.items() if name in switches}
            for name, own in switches.items():
                if name in self.ribs:
                    self.ribs[name].follow(own, now)
                else:
                    self.ribs[name] = Rib(own, now)
            self._followed = config, _inputs(config)
            self._changed.set()
        return learn

    async def _read(self, learn: Learn) -> None:
        """Read until the connection ends, or the routes have to be read again."""
        host, port = split_listen(learn.bmp)
        async with asyncio.timeout(CONNECT_TIMEOUT):
            reader, writer = await asyncio.open_connection(host, port, limit=READ_LIMIT)
        try:
            for rib in self.ribs.values():
                rib.refreshing()
            log.info("BGP: reading routes from FRR at %s", learn.bmp)
            self.error = None
            inputs = self._followed[1] if self._followed else None
            listening = asyncio.create_task(self._listen(reader))
            try:
                while not listening.done():
                    await asyncio.wait({listening}, timeout=INTERVAL)
                    if await self._follow() is None or self._followed is None or self._followed[1] != inputs:
                        return
                    self._check_lost()
                    if any(rib.wants_refresh for rib in self.ribs.values()):
                        log.info("BGP: reading all routes again")
                        return
                listening.result()
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            for rib in self.ribs.values():
                rib.disconnected(time.monotonic())
            self._changed.set()

    def _check_lost(self) -> None:
        """Find the routers that were lost before this connection: BMP does not tell them from those that FRR has just begun to call."""
        for address, session in self._sessions().items():
            if session.drops and session.state != ESTABLISHED:
                for rib in self.ribs.values():
                    if rib.lost(address, time.monotonic()):
                        log.warning("BGP: %s was lost before", address)
                        self._urgent.set()
                        self._changed.set()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while True:
            event = await bmp.read(reader)
            if event is None:
                continue
            if isinstance(event, bmp.PeerDown):
                event = replace(event, is_restart=await self._may_restart(event))
            was_up = any(rib.is_up(event.peer) for rib in self.ribs.values())
            now = time.monotonic()
            for rib in self.ribs.values():
                rib.process(event, now)
            if isinstance(event, bmp.PeerUp):
                log.info("BGP: the session with %s is established", event.peer)
            elif isinstance(event, bmp.PeerDown) and was_up:
                log.warning("BGP: the session with %s ended%s", event.peer, ": it restarts" if event.is_restart else "")
                self._urgent.set()
            self._changed.set()

    async def _may_restart(self, event: bmp.PeerDown) -> bool:
        """Return whether FRR keeps the routes of the router. BMP does not tell why FRR itself ends a session."""
        if event.reason not in (bmp.Reason.LOCAL_EVENT, bmp.Reason.REMOTE_CLOSED):
            return False
        prefix = next((found for rib in self.ribs.values() if (found := rib.route_of(event.peer)) is not None), None)
        return prefix is not None and await self._keeps_stale(prefix, event.peer)

    async def _keeps_stale(self, prefix: IPNetwork, address: IPAddress) -> bool:
        bgp = self._fleet.config.bgp
        if bgp is None:
            return False
        try:
            return await Frr(bgp.vtysh).keeps_stale(prefix, address)
        except FrrError as error:
            log.warning("BGP: %s: stale routes of %s go", error, address)
            return False

    def _report(self, learn: Learn, error: Exception) -> None:
        text = "FRR ended the connection" if isinstance(error, asyncio.IncompleteReadError) else str(error) or "no response"
        message = f"no routes from FRR at {learn.bmp}: {text}: start bgpd with the option -M bmp, or correct bgp.learn.bmp"
        if self.error != message:
            log.warning("BGP: %s", message)
        self.error = message

    async def _publish(self) -> None:
        """Give the switches their routes after every change."""
        while True:
            due = min((rib.due for rib in self.ribs.values()), default=math.inf)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(max(due - time.monotonic(), 0), INTERVAL)):
                    await self._changed.wait()
            if self._changed.is_set() and not self._urgent.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GATHER_TIME):
                        await self._urgent.wait()
            self._changed.clear()
            self._urgent.clear()
            now = time.monotonic()
            for rib in self.ribs.values():
                for address, prefix in [*rib.unconfirmed(now)]:
                    if await self._keeps_stale(prefix, address):
                        rib.postpone(address, now)
                rib.expire(now)
            fallen = [name for name, rib in self.ribs.items() if rib.has_fallen]
            await self._give()
            if fallen:
                # The groups change first: that needs one write for each group, rather than for each route.
                await asyncio.gather(*(self._wait_for_groups(name) for name in fallen))
                for name in fallen:
                    if (found := self.ribs.get(name)) is not None:
                        found.take_down()
                self._changed.set()

    async def _give(self) -> None:
        for name, rib in self.ribs.items():
            controller = self._fleet.controllers.get(name)
            version = rib.version
            if controller is not None and self._published.get(name) != (controller, version):
                self._published[name] = controller, version
                await controller.learn(rib.learned())

    async def _wait_for_groups(self, name: str) -> None:
        controller = self._fleet.controllers.get(name)
        if controller is not None and controller.primary:
            with contextlib.suppress(TimeoutError, ReconcileError):
                async with asyncio.timeout(GROUPS_TIMEOUT):
                    await controller.installed()

    def describe(self) -> dict[str, Any] | None:
        """Return the part of a status, or None without the section ``bgp.learn``."""
        learn = self._fleet.config.bgp.learn if self._fleet.config.bgp is not None else None
        if learn is None:
            return None
        return {"error": self.error, "devices": {name: self._describe(name, rib) for name, rib in self.ribs.items()}}

    def _describe(self, name: str, rib: Rib) -> dict[str, Any]:
        controller = self._fleet.controllers.get(name)
        learned = controller.learned if controller is not None else NOTHING
        groups = controller.groups if controller is not None else {}
        return {
            "learned": {f"ipv{version}": count for version, count in rib.counts.items()},
            "installed": len(learned.routes) if controller is not None and controller.health.ok else 0,
            "groups": len(groups),
            "is_complete": learned.is_complete,
            "rejected": dict(rejections(rib)),
            "routers": [
                {"address": str(router.address), "is_up": router.is_up, "routes": len(router.paths), "stale": router.stale}
                for router in rib.routers.values()
            ],
        }

    def explain(self, address: IPAddress) -> dict[str, Any]:
        """Return the learned routes to an address, by switch."""
        result: dict[str, Any] = {}
        for name, rib in self.ribs.items():
            prefix = rib.lookup(address)
            controller = self._fleet.controllers.get(name)
            learned = controller.learned if controller is not None else NOTHING
            hops = learned.routes.get(prefix, ()) if prefix is not None else ()
            result[name] = {
                "prefix": str(prefix) if prefix is not None else None,
                "next_hops": [str(hop) for hop in hops],
                "down": [str(hop) for hop in hops if hop in learned.down],
                "paths": [
                    {
                        "router": str(router.address),
                        "next_hop": str(path.next_hop),
                        "local_pref": path.local_pref,
                        "as_path": list(path.as_path),
                        "med": path.med,
                        "is_stale": epoch != router.epoch or not router.is_up,
                        "is_used": path.next_hop in hops,
                    }
                    for router in rib.routers.values()
                    if prefix is not None and (found := router.paths.get(prefix)) is not None
                    for path, epoch in [found]
                ],
            }
        return result


def rejections(rib: Rib) -> Counter[str]:
    """Return the number of rejected announcements by reason."""
    result: Counter[str] = Counter({reason.value: 0 for reason in Rejection})
    for (_, reason), count in rib.rejected.items():
        result[reason.value] += count
    return result


def _inputs(config: Config) -> object:
    """Return what the acceptance of routes depends on: if it changes, they have to be read again."""
    return config.bgp, [(own.device.name, own.ports, own.routes, own.neighbors, own.servers) for own in config.switches]

# SPDX-License-Identifier: Apache-2.0
"""Keeps FRR's announcements as the configuration and the state of the switches require."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from dataclasses import replace
from typing import Any, NamedTuple

from frontage.bgp.announce import NOTHING, Announcement, SwitchState, announcement
from frontage.bgp.frr import ESTABLISHED, Frr, FrrError, Originated, SessionState, lines, monitor_lines, recovered, setup_lines
from frontage.bgp.resolution import unresolved
from frontage.config.bgp import Bgp
from frontage.fields import IPAddress
from frontage.service.controller import Controller
from frontage.service.fleet import Fleet

log = logging.getLogger(__name__)

INTERVAL = 0.1
"""Seconds between looks at the switches."""
POLL_INTERVAL = 2.0
"""Seconds between looks at the sessions, and between attempts after an error."""


PASSWORD = r"[!-~]{1,80}"
"""Passwords that FRR accepts."""


class _Unresolved(NamedTuple):
    """The service addresses that a switch does not resolve, with the versions of what they depend on."""

    inputs: tuple[int, int, int]
    services: frozenset[str]


class Speaker:
    """Announces the VIPs of a fleet. Only the primary of a switch announces; a standby leaves FRR as it is."""

    def __init__(self, fleet: Fleet):
        self.announced = NOTHING
        """The announcement that FRR has."""
        self.sessions: dict[IPAddress, SessionState] = {}
        self.error: str | None = None
        self.monitor_error: str | None = None
        """Why FRR does not offer its routes by BMP. It announces nevertheless."""
        self._fleet = fleet
        self._setup: object = None
        """The part of the configuration for which the instance in FRR was set up."""
        self._present = Originated()
        self._draining_since: dict[str, float] = {}
        self._unresolved: dict[str, _Unresolved] = {}
        """By name of the switch."""

    async def run(self) -> None:
        """Follow the configuration and the switches until cancelled."""
        polled = 0.0
        while True:
            bgp = self._fleet.config.bgp
            if bgp is not None and self._fleet.primary:
                try:
                    await self.step(bgp, time.monotonic())
                    if time.monotonic() - polled > POLL_INTERVAL:
                        polled = time.monotonic()
                        self.sessions = await Frr(bgp.vtysh).sessions()
                        if {neighbor.address for neighbor in bgp.neighbors} - self.sessions.keys():
                            self._setup = None  # FRR has restarted, and has lost its configuration
                    self.error = None
                except FrrError as error:
                    if self.error != str(error):
                        log.error("BGP: %s", error)
                    self.error, self._setup = str(error), None
                    await asyncio.sleep(POLL_INTERVAL)
            else:
                self._setup, self.sessions = None, {}
            await asyncio.sleep(INTERVAL)

    async def step(self, bgp: Bgp, now: float) -> None:
        """Bring FRR to the state that is required now. Raises FrrError."""
        config, frr = self._fleet.config, Frr(bgp.vtysh)
        setup = bgp, [config.bgp_next_hop(neighbor) for neighbor in bgp.neighbors]
        last = self.announced
        if self._setup != setup:
            self._present = await frr.originated(bgp.asn)
            if last is NOTHING:
                last = recovered(config, bgp, self._present)
        wanted = announcement(config, bgp, self._states(bgp, now), last)
        if self._setup != setup:
            passwords = await asyncio.to_thread(_passwords, bgp)
            # Policies first, so that no router learns a route without one.
            same_networks = replace(wanted, prefixes=self._present.networks)
            policies = lines(config, bgp, self._present, same_networks)
            await frr.configure([*policies, *setup_lines(bgp, passwords, self._present)])
            self._setup, self.announced = setup, same_networks
            self._present = replace(self._present, withheld=wanted.withheld)
            self.monitor_error = await _set_up_monitor(frr, bgp)
        if wanted != self.announced:
            await frr.configure(lines(config, bgp, self._present, wanted))
            self._report(wanted)
            self._present = replace(self._present, networks=wanted.prefixes, withheld=wanted.withheld)
            self.announced = wanted

    def _states(self, bgp: Bgp, now: float) -> dict[str, SwitchState]:
        draining = self._fleet.config.draining_switches
        self._draining_since = {name: self._draining_since.get(name, now) for name in draining}
        controllers = self._fleet.controllers
        self._unresolved = {name: self._look_up(name, controller, bgp.min_servers) for name, controller in controllers.items()}
        return {
            name: SwitchState(
                controller.health.ok,
                now - self._draining_since[name] if name in draining else None,
                self._unresolved[name].services,
                self._isolated(bgp, name),
            )
            for name, controller in controllers.items()
        }

    def _isolated(self, bgp: Bgp, name: str) -> frozenset[int]:
        """Return the IP versions for which a switch has upstream routers, and FRR has lost the sessions with all of them."""
        sessions: dict[int, list[SessionState | None]] = {}
        for neighbor in bgp.upstreams:
            if self._fleet.config.bgp_device(neighbor) == name:
                sessions.setdefault(neighbor.address.version, []).append(self.sessions.get(neighbor.address))
        return frozenset(
            version
            for version, states in sessions.items()
            if all(state is not None and state.state != ESTABLISHED for state in states)
        )

    def _look_up(self, name: str, controller: Controller, min_servers: int) -> _Unresolved:
        """Return the service addresses that a switch does not resolve. The result is cached until something changes."""
        inputs = controller.version, controller.neighbors.version, min_servers
        before = self._unresolved.get(name)
        if before is not None and before.inputs == inputs:
            return before
        return _Unresolved(inputs, unresolved(controller.config, controller.mapping, controller.neighbors.known, min_servers))

    def _report(self, wanted: Announcement) -> None:
        for prefix in sorted(wanted.prefixes - self.announced.prefixes, key=str):
            log.info("BGP: announcing %s", prefix)
        for prefix in sorted(self.announced.prefixes - wanted.prefixes, key=str):
            log.warning("BGP: withdrawing %s", prefix)
        for name, export in wanted.exports.items():
            if self.announced.exports.get(name) is not export:
                log.info("BGP: %s: %s", name, export)
            withheld, before = wanted.withheld.get(name, frozenset()), self.announced.withheld.get(name, frozenset())
            if withheld != before:
                log.warning("BGP: %s: withheld: %s", name, ", ".join(sorted(map(str, withheld))) or "nothing")

    def describe(self) -> dict[str, Any] | None:
        """Return the part of a status, or None without the section ``bgp``."""
        config = self._fleet.config
        if config.bgp is None:
            return None
        unknown = SessionState("unknown")
        return {
            "error": self.error,
            "prefixes": sorted(str(prefix) for prefix in self.announced.prefixes),
            "exports": {name: str(export) for name, export in self.announced.exports.items()},
            "withheld": {name: sorted(map(str, prefixes)) for name, prefixes in self.announced.withheld.items()},
            "unresolved": {name: sorted(found.services) for name, found in self._unresolved.items() if found.services},
            "neighbors": [
                {
                    "address": str(neighbor.address),
                    "asn": neighbor.asn,
                    "device": config.bgp_device(neighbor),
                    "announce": neighbor.announce.value,
                    "state": (session := self.sessions.get(neighbor.address, unknown)).state,
                    "sent": session.sent,
                    "drops": session.drops,
                }
                for neighbor in config.bgp.neighbors
            ],
        }


async def _set_up_monitor(frr: Frr, bgp: Bgp) -> str | None:
    """Let FRR offer its routes, and return why it does not."""
    if bgp.learn is None:
        return None
    try:
        await frr.configure(monitor_lines(bgp, bgp.learn))
    except FrrError as error:
        log.error("BGP: FRR does not offer its routes by BMP: %s: start bgpd with the option -M bmp", error)
        return str(error)
    return None


def _passwords(bgp: Bgp) -> dict[IPAddress, str]:
    """Read the passwords of the sessions. Raises FrrError."""
    result = {}
    for neighbor in bgp.neighbors:
        if neighbor.password_file is None:
            continue
        try:
            password = neighbor.password_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise FrrError(f"{neighbor.password_file}: cannot be read: {error}: write the password there") from None
        if not re.fullmatch(PASSWORD, password):
            raise FrrError(f"{neighbor.password_file}: invalid password: write 1 to 80 printable ASCII characters without spaces")
        result[neighbor.address] = password
    return result

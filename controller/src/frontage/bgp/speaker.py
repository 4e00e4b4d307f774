# SPDX-License-Identifier: Apache-2.0
"""Keeps FRR's announcements as the configuration and the state of the switches require."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from dataclasses import replace
from typing import Any

from frontage.bgp.announce import NOTHING, Announcement, SwitchState, announcement
from frontage.bgp.frr import Frr, FrrError, Originated, SessionState, lines, monitor_lines, setup_lines
from frontage.config.bgp import Bgp
from frontage.fields import IPAddress
from frontage.service.fleet import Fleet

log = logging.getLogger(__name__)

INTERVAL = 0.1
"""Seconds between looks at the switches."""
POLL_INTERVAL = 2.0
"""Seconds between looks at the sessions, and between attempts after an error."""


PASSWORD = r"[!-~]{1,80}"
"""Passwords that FRR accepts."""


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
        wanted = announcement(config, bgp, self._states(now), self.announced)
        setup = bgp, [config.bgp_next_hop(neighbor) for neighbor in bgp.neighbors]
        if self._setup != setup:
            self._present = await frr.originated(bgp.asn)
            passwords = await asyncio.to_thread(_passwords, bgp)
            # Policies first, so that no router learns a route without one.
            policies = [*lines(config, bgp, self._present, replace(wanted, prefixes=self._present.networks))]
            await frr.configure([*policies, *setup_lines(bgp, passwords, self._present)])
            self._setup, self.announced = setup, replace(wanted, prefixes=self._present.networks)
            self.monitor_error = await _set_up_monitor(frr, bgp)
        if wanted != self.announced:
            await frr.configure(lines(config, bgp, self._present, wanted))
            self._report(wanted)
            self._present = replace(self._present, networks=wanted.prefixes)
            self.announced = wanted

    def _states(self, now: float) -> dict[str, SwitchState]:
        draining = self._fleet.config.draining_switches
        self._draining_since = {name: self._draining_since.get(name, now) for name in draining}
        return {
            name: SwitchState(controller.health.ok, now - self._draining_since[name] if name in draining else None)
            for name, controller in self._fleet.controllers.items()
        }

    def _report(self, wanted: Announcement) -> None:
        for prefix in sorted(wanted.prefixes - self.announced.prefixes, key=str):
            log.info("BGP: announcing %s", prefix)
        for prefix in sorted(self.announced.prefixes - wanted.prefixes, key=str):
            log.warning("BGP: withdrawing %s", prefix)
        for name, export in wanted.exports.items():
            if self.announced.exports.get(name) is not export:
                log.info("BGP: %s: %s", name, export)

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
            "neighbors": [
                {
                    "address": str(neighbor.address),
                    "asn": neighbor.asn,
                    "device": config.bgp_device(neighbor),
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

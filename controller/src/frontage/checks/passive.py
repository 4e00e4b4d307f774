# SPDX-License-Identifier: Apache-2.0
"""Passive checks: the switch's counters reveal servers that answer no packets or handshakes, or report no loads.

Judging them needs no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from frontage.config import Config
from frontage.config.health import HealthCheck
from frontage.p4.entities import Count
from frontage.p4.entries import Key
from frontage.p4.p4info import Schema
from frontage.p4.session import Session
from frontage.state.blocks import server as server_block
from frontage.state.blocks import vip as vip_block

_OPENINGS = "openings.packets"
"""The counter, indexed by SID (12 bits) and kind (2 bits): begun, answered, with a report. Some programs lack it."""
_KINDS = 4


class Packets(NamedTuple):
    """The packets to and from a server, and its handshakes, since its entries were installed."""

    up: int = 0
    down: int = 0
    begun: int = 0
    """Packets of clients that begin a handshake."""
    answered: int = 0
    reports: int = 0
    """Other packets of the server, with a report of its loads."""

    def plus(self, other: Packets) -> Packets:
        """Return the sum of the counts of two switches."""
        return Packets(*(a + b for a, b in zip(self, other, strict=True)))

    def since(self, earlier: Packets) -> Packets | None:
        """Return the difference to earlier counts; None if a switch has restarted counting."""
        difference = Packets(*(a - b for a, b in zip(self, earlier, strict=True)))
        return difference if min(difference) >= 0 else None


class _Sample(NamedTuple):
    at: float
    packets: Packets


class PassiveChecks:
    """The last counters of each server."""

    def __init__(self) -> None:
        self._last: dict[str, _Sample] = {}

    def observe(self, now: float, name: str, packets: Packets, check: HealthCheck) -> str | None:
        """Take the counters of a server. Return why it fails its passive check; None if it does not, or its window is not over."""
        last = self._last.get(name)
        new = packets.since(last.packets) if last is not None else None
        if last is None or new is None:
            # The first counters, or those of entries that were installed again.
            self._last[name] = _Sample(now, packets)
            return None
        if now - last.at < check.passive_window:
            return None
        self._last[name] = _Sample(now, packets)
        if new.up >= check.passive_packets and not new.down:
            return f"{new.up} packets to it in {now - last.at:.1f} s, but none from it"
        if new.begun >= check.passive_handshakes and not new.answered:
            return f"{new.begun} handshakes with it in {now - last.at:.1f} s, but none was answered"
        if check.passive_reports and new.down >= check.passive_packets and not new.reports:
            return f"{new.down} packets from it in {now - last.at:.1f} s, but none with a report of its loads"
        return None

    def forget(self) -> None:
        """Begin anew, after a time without counters."""
        self._last.clear()


def passive_checks(config: Config) -> dict[str, HealthCheck]:
    """Return the checks of the VIPs with passive checks, by VIP name."""
    if not config.checkers:
        return {}
    return {vip.name: vip.health for vip in config.vips if vip.health is not None and vip.health.passive}


async def read_packets(session: Session, schema: Schema, config: Config) -> dict[str, Packets]:
    """Return the packets of the servers with passive checks, by server name. Raises SwitchError."""
    vips = {vip.name: vip for vip in config.vips if vip.name in passive_checks(config)}
    servers = [server for server in config.servers if server.vip in vips]
    keys = {server.name: (server_block.key(server), vip_block.dip(server, vips[server.vip])) for server in servers}
    names = {key.table for pair in keys.values() for key in pair}
    counts: Mapping[Key, Count] = await session.read_direct_counters(schema, schema.present(sorted(names)))
    openings = await _read_openings(session, schema)
    sids = {server.name: server.sid for server in servers}
    return {
        name: Packets(counts.get(up, Count()).packets, counts.get(down, Count()).packets, *openings.get(sids[name], (0, 0, 0)))
        for name, (up, down) in keys.items()
    }


async def _read_openings(session: Session, schema: Schema) -> dict[int, tuple[int, int, int]]:
    """Return the begun and the answered handshakes and the reports by SID; none if the program does not count them."""
    if _OPENINGS not in schema.counters:
        return {}
    found = {index: count.packets for (_, index), count in (await session.read_counters([schema.counter(_OPENINGS)])).items()}
    return {
        index // _KINDS: (found.get(index, 0), found.get(index + 1, 0), found.get(index + 2, 0))
        for index in found
        if index % _KINDS == 0
    }

# SPDX-License-Identifier: Apache-2.0
"""Passive checks: the switch's counters show a server that gets packets and sends none. Judging them needs no clock."""

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


class Packets(NamedTuple):
    """The packets to and from a server since its entries were installed."""

    up: int
    down: int


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
        if last is None or packets.up < last.packets.up or packets.down < last.packets.down:
            # The first counters, or those of entries that were installed again.
            self._last[name] = _Sample(now, packets)
            return None
        if now - last.at < check.passive_window:
            return None
        self._last[name] = _Sample(now, packets)
        got = packets.up - last.packets.up
        if got < check.passive_packets or packets.down > last.packets.down:
            return None
        return f"{got} packets to it in {now - last.at:.1f} s, but none from it"

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
    return {name: Packets(*(counts.get(key, Count()).packets for key in pair)) for name, pair in keys.items()}

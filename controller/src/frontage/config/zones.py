# SPDX-License-Identifier: Apache-2.0
"""Zones: each switch prefers the servers of its own zone (docs/zones.md).

The servers of other zones stay members of every VIP, so that each switch still forwards the connections that they have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from frontage.config.vips import Policy, Server, Vip, by_vip

_WEIGHTED = frozenset({Policy.HASH, Policy.CHEETAH_RR})
"""Policies that give servers connections in proportion to their weights. The other ones compare loads."""


def for_zone(vips: Sequence[Vip], servers: Sequence[Server], zone: str) -> tuple[Server, ...]:
    """Return ``servers`` as the switches of a zone use them: those that get no new connections there are draining."""
    grouped = by_vip(servers)
    shares = {
        vip.name: _share_of_others(vip, grouped.get(vip.name, []), zone, vip.spill_over)
        for vip in vips
        if vip.spill_over is not None
    }
    return tuple(_used(server, shares[server.vip], zone) if server.vip in shares else server for server in servers)


def is_own(server: Server, zone: str) -> bool:
    """Return whether the server is in the zone. A server without a zone is in every one."""
    return server.zone in (None, zone)


def _share_of_others(vip: Vip, servers: Sequence[Server], zone: str, spill_over: float) -> int:
    """Return the part of their weights that servers of other zones have at the switches of a zone, in percent.

    They replace what the zone's healthy servers lack of ``spill_over``, as with Envoy's priority levels. If the zone has no healthy
    server, they take everything. A policy that compares loads needs no shares: the least-loaded server gets the connection.
    """
    own = [server for server in servers if is_own(server, zone)]
    # Servers that drain are neither healthy nor failed: they leave the zone.
    capacity = sum(server.weight for server in own if server.active or server.is_failed)
    healthy = sum(server.weight for server in own if server.active)
    others = sum(server.weight for server in servers if server.active and not is_own(server, zone))
    missing = spill_over * capacity - healthy
    if not healthy or not others:
        return 100
    if missing <= 0:
        return 0
    return min(100, math.ceil(100 * missing / others)) if vip.policy in _WEIGHTED else 100


def _used(server: Server, share_of_others: int, zone: str) -> Server:
    if not server.active or is_own(server, zone) or share_of_others == 100:
        return server
    if share_of_others == 0:
        return server.draining()
    return server.with_share(max(1, server.share * share_of_others // 100))

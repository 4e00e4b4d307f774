# SPDX-License-Identifier: Apache-2.0
"""The sizes of the VIPs' tables for consistent hashing (docs/second-hop.md).

Resizing a table would move most connections without a cookie, so a table has room for more servers than its VIP has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frontage import limits
from frontage.config.vips import Vip

_SLOTS_PER_SERVER = 16
_SLOTS_MIN = 2 * _SLOTS_PER_SERVER

_ROOMS = (64, 16, 1)
"""Numbers of servers for which a table without `max_servers` has room. The first number with which all tables fit is used."""


def slots(servers: int, room: int) -> int:
    """Return the size of a VIP's table, a power of two, for this number of servers (including draining ones) and ``room``."""
    return max(_SLOTS_MIN, _SLOTS_PER_SERVER << (max(servers, room, 1) - 1).bit_length())


def rooms(vips: Iterable[Vip], servers: Mapping[str, int]) -> dict[str, int]:
    """Return the number of servers for which each VIP's table has room at least, by VIP name.

    ``servers`` is the number of servers by VIP name. The result depends on nothing else, so all switches and controllers
    agree.
    """
    found: dict[str, int] = {}
    for room in _ROOMS:
        found = {vip.name: vip.max_servers or room for vip in vips}
        if total(found, servers) <= limits.MAGLEV_SLOTS:
            break
    return found


def total(room: Mapping[str, int], servers: Mapping[str, int]) -> int:
    """Return the number of slots of all tables, for rooms and numbers of servers by VIP name."""
    return sum(slots(servers.get(name, 0), of_vip) for name, of_vip in room.items())

# SPDX-License-Identifier: Apache-2.0
"""``maglev.p4``: consistent hashing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from frontage import maglev
from frontage.config.vips import Server
from frontage.p4.entries import Action, Key, State
from frontage.state.resolved import ResolvedVip

MAGLEV = "maglev.maglev"
TABLES = (MAGLEV,)

_SLOTS_PER_SERVER = 16
_SLOTS_MIN = 2 * _SLOTS_PER_SERVER


_table = lru_cache(maxsize=16)(maglev.table)
"""Tables of the last VIPs, because the state of a server changes more often than the set of servers."""


def slots(servers: int) -> int:
    """Return the size of a VIP's Maglev table: a power of two, and at most ``limits.MAGLEV_SLOTS`` for all VIPs together.

    Draining servers count, so draining does not resize the table, which would move most connections.
    """
    return max(_SLOTS_MIN, _SLOTS_PER_SERVER << (max(servers, 1) - 1).bit_length())


def entries(vips: Iterable[ResolvedVip]) -> State:
    return {
        Key(MAGLEV, (vip.id, slot)): Action("select_server", (sid,))
        for vip in vips
        for slot, sid in enumerate(slot_sids([server.config for server in vip.servers]))
    }


def slot_sids(servers: Sequence[Server]) -> list[int]:
    """Return the SID of each slot; none without active servers.

    Draining moves only the slots of the draining server, and slow start only those that it gives back.
    """
    if not any(server.active for server in servers):
        return []
    backends = tuple(maglev.Backend(f"[{server.address}]:{server.port}", server.sid, server.weight) for server in servers)
    shares = {server.sid: server.share if server.active else 0 for server in servers if not server.active or server.share < 100}
    if len(shares) == len(servers):
        # Only servers in slow start are left.
        shares = {sid: share for sid, share in shares.items() if not share}
    return maglev.thinned(_table(backends, slots(len(servers))), shares)

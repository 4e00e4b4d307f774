# SPDX-License-Identifier: Apache-2.0
"""``assign.p4``: the pool of weighted round robin (policy ``cheetah-rr``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd

from frontage import limits
from frontage.config.vips import Server
from frontage.p4.entries import Action, Key, State
from frontage.state.resolved import ResolvedVip

POOL = "assign.pool"
TABLES = (POOL,)

_ENTRIES_PER_SERVER = limits.POOL_ENTRIES // limits.MAX_SERVERS


def entries(vips: Iterable[ResolvedVip]) -> State:
    return {
        Key(POOL, (vip.id, index)): Action("select_server", (sid,))
        for vip in vips
        for index, sid in enumerate(pool([server.config for server in vip.servers]))
    }


def pool(servers: Sequence[Server]) -> list[int]:
    """Return the SIDs of the active servers in round-robin order, each as often as its weight says and evenly spread.

    The weights of servers in slow start count in part.
    """
    active = sorted((server for server in servers if server.active), key=lambda server: server.sid)
    if not active:
        return []
    weights = [server.weight * server.share for server in active]
    divisor = gcd(*weights)
    counts = [weight // divisor for weight in weights]
    budget = _ENTRIES_PER_SERVER * len(active)
    if sum(counts) > budget:
        # Too many entries for the table: round the shares, but keep every server in the pool.
        total = sum(counts)
        counts = [max(1, count * (budget - len(active)) // total) for count in counts]
    turns = [
        (Fraction(2 * turn + 1, 2 * count), server.sid)
        for server, count in zip(active, counts, strict=True)
        for turn in range(count)
    ]
    return [sid for _, sid in sorted(turns)]

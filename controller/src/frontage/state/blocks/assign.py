"""``assign.p4``: the places of weighted round robin (policy ``cheetah-rr``)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd

from frontage import limits
from frontage.config import Config
from frontage.config.vips import Server
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

POOL = "assign.pool"
TABLES = (POOL,)

_PLACES_PER_SERVER = limits.POOL_ENTRIES // limits.MAX_SERVERS


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    for vip, servers in config.servers_by_vip.items():
        vip_id = allocation.vip_ids[vip]
        for place, sid in enumerate(places(servers)):
            state[Key(POOL, (vip_id, place))] = Action("select_server", (sid,))
    return state


def places(servers: Sequence[Server]) -> list[int]:
    """The SIDs of the active servers in their turns: each as often as its weight says, evenly spread."""
    active = sorted((server for server in servers if server.active), key=lambda server: server.sid)
    if not active:
        return []
    divisor = gcd(*(server.weight for server in active))
    counts = [server.weight // divisor for server in active]
    budget = _PLACES_PER_SERVER * len(active)
    if sum(counts) > budget:
        # More places than the program has: shares are rounded, nobody's to nothing.
        total = sum(counts)
        counts = [max(1, count * (budget - len(active)) // total) for count in counts]
    turns = [
        (Fraction(2 * turn + 1, 2 * count), server.sid)
        for server, count in zip(active, counts, strict=True)
        for turn in range(count)
    ]
    return [sid for _, sid in sorted(turns)]

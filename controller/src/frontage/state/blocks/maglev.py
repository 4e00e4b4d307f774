"""``maglev.p4``: consistent hashing."""

from __future__ import annotations

from collections.abc import Sequence

from frontage import maglev
from frontage.config import Config
from frontage.config.vips import Server
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

MAGLEV = "maglev.maglev"
TABLES = (MAGLEV,)

_SLOTS_PER_SERVER = 16
_SLOTS_MIN = 2 * _SLOTS_PER_SERVER


def slots(servers: int) -> int:
    """The size of a VIP's Maglev table: a power of two, and never more than ``limits.MAGLEV_SLOTS`` in all.

    Draining servers count, so that draining does not resize the table and thereby move everyone.
    """
    return max(_SLOTS_MIN, _SLOTS_PER_SERVER << (max(servers, 1) - 1).bit_length())


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    for vip, servers in config.servers_by_vip.items():
        vip_id = allocation.vip_ids[vip]
        for slot, sid in enumerate(hashed(servers)):
            state[Key(MAGLEV, (vip_id, slot))] = Action("select_server", (sid,))
    return state


def hashed(servers: Sequence[Server]) -> list[int]:
    """The SID of each slot; empty without active servers. Draining moves the slots of the draining server and no others."""
    if not any(server.active for server in servers):
        return []
    everyone = [maglev.Backend(f"[{server.address}]:{server.port}", server.sid, server.weight) for server in servers]
    draining = {server.sid for server in servers if not server.active}
    return maglev.without(maglev.table(everyone, slots(len(servers))), draining)

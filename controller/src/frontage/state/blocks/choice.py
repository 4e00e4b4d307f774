"""``choice.p4``: which servers are a VIP's, active and draining."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

MEMBER = "choice.member"
TABLES = (MEMBER,)


def entries(config: Config, allocation: Allocation) -> State:
    return {
        Key(MEMBER, (allocation.vip_ids[server.vip], server.sid)): Action(
            "set_member", (allocation.slots[server.sid], int(server.active))
        )
        for server in config.servers
    }

"""``vip.p4``: which packets are a VIP's, in which direction, and the VIP's policy."""

from __future__ import annotations

from frontage.allocation import FLOW_UNIT, Allocation, server_scores
from frontage.blocks.assign import places
from frontage.blocks.fallback import slots
from frontage.config import Config, Policy
from frontage.state import Action, Key, State

VIP4 = "vip.vip4"
VIP6 = "vip.vip6"
ADDRESS4 = "vip.address4"
ADDRESS6 = "vip.address6"
DIP4 = "vip.dip4"
DIP6 = "vip.dip6"
POLICY = "vip.policy"
TABLES = (VIP4, VIP6, ADDRESS4, ADDRESS6, DIP4, DIP6, POLICY)

_POLICIES = {
    Policy.HASH: 1,
    Policy.CHEETAH_RR: 2,
    Policy.CHEETAH_LL: 3,
    # One program: these three differ only in the score tables of their servers' classes.
    Policy.CCLB4: 4,
    Policy.CCLB4_CURRENT: 4,
    Policy.CCLB4_FUTURE: 4,
}


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    servers = config.servers_by_vip
    for vip in config.vips:
        vip_id = allocation.vip_ids[vip.name]
        ipv4 = vip.address.version == 4
        state[Key(VIP4 if ipv4 else VIP6, (int(vip.address), vip.port))] = Action("set_vip", (vip_id,))
        state[Key(ADDRESS4 if ipv4 else ADDRESS6, (int(vip.address),))] = Action("no_service")
        block = allocation.trees[vip.name]
        pool_size = len(places(servers[vip.name]))
        maglev_mask = slots(len(servers[vip.name])) - 1
        params = (_POLICIES[vip.policy], FLOW_UNIT, block.base, block.depth, pool_size, maglev_mask)
        state[Key(POLICY, (vip_id,))] = Action("set_policy", params)

    vips = {vip.name: vip for vip in config.vips}
    scores = server_scores(config)
    for server in config.servers:
        vip = vips[server.vip]
        table, action = (DIP4, "from_server4") if server.address.version == 4 else (DIP6, "from_server6")
        state[Key(table, (int(server.address), server.port))] = Action(
            action,
            (
                server.sid,
                allocation.vip_ids[vip.name],
                allocation.slots[server.sid],
                int(server.active),
                allocation.classes[scores[server.sid]],
                int(vip.address),
                vip.port,
            ),
        )
    return state

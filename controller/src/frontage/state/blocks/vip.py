"""``vip.p4``: which packets are a VIP's, in which direction, and the VIP's policy."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.vips import Policy, Protocol, Server, Vip
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation
from frontage.state.blocks.assign import places
from frontage.state.blocks.maglev import slots
from frontage.state.scores import FLOW_UNIT, server_scores

VIP4 = "vip.vip4"
VIP6 = "vip.vip6"
ADDRESS4 = "vip.address4"
ADDRESS6 = "vip.address6"
DIP4 = "vip.dip4"
DIP6 = "vip.dip6"
QUIC_DIP6 = "vip.quic_dip6"
COOKIE_ADDRESS = "vip.cookie_address"
COOKIE_PREFIX = "vip.cookie_prefix"
POLICY = "vip.policy"
DIPS = (DIP4, DIP6, QUIC_DIP6)
TABLES = (VIP4, VIP6, COOKIE_ADDRESS, ADDRESS4, ADDRESS6, COOKIE_PREFIX, *DIPS, POLICY)

_INTERFACE_ID = (1 << 64) - 1

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
    for address in config.site.vtep if config.site is not None else ():
        state[Key(ADDRESS4 if address.version == 4 else ADDRESS6, (int(address),))] = Action("no_service")
    for vip in config.vips:
        vip_id = allocation.vip_ids[vip.name]
        ipv4 = vip.address.version == 4
        match = (int(vip.address), vip.protocol.number, vip.port)
        state[Key(VIP4 if ipv4 else VIP6, match)] = Action("set_vip", (vip_id,))
        state[Key(ADDRESS4 if ipv4 else ADDRESS6, (int(vip.address),))] = Action("no_service")
        if vip.cookie_prefix is not None:
            prefix = _prefix(vip)
            state[Key(COOKIE_ADDRESS, (prefix, vip.port))] = Action("set_cookie_address", (vip_id,))
            state[Key(COOKIE_PREFIX, (prefix,))] = Action("no_service")
        block = allocation.trees[vip.name]
        pool_size = len(places(servers[vip.name]))
        maglev_mask = slots(len(servers[vip.name])) - 1
        policy = (_POLICIES[vip.policy], FLOW_UNIT, block.base, block.depth, pool_size, maglev_mask)
        state[Key(POLICY, (vip_id,))] = Action("set_policy", policy)

    vips = {vip.name: vip for vip in config.vips}
    scores = server_scores(config)
    for server in config.servers:
        vip = vips[server.vip]
        key = dip(server, vip)
        params: tuple[int, ...] = (
            server.sid,
            allocation.vip_ids[vip.name],
            allocation.slots[server.sid],
            int(server.active),
            allocation.classes[scores[server.sid]],
            int(vip.address),
            vip.port,
        )
        if key.table == QUIC_DIP6:
            params += (int(server.address) & _INTERFACE_ID, _prefix(vip))
        state[key] = Action(_FROM_SERVER[key.table], params)
    return state


_FROM_SERVER = {DIP4: "from_server4", DIP6: "from_server6", QUIC_DIP6: "from_quic_server6"}


def dip(server: Server, vip: Vip) -> Key:
    """By which a packet of ``server`` is known."""
    address = int(server.address)
    if server.address.version == 4:
        return Key(DIP4, (address, vip.protocol.number, server.port))
    if vip.protocol is Protocol.TCP:
        return Key(DIP6, (address, server.port))
    return Key(QUIC_DIP6, (address >> 64, server.port))


def _prefix(vip: Vip) -> int:
    """The upper half of the VIP's cookie addresses; zero without."""
    return int(vip.cookie_prefix.network_address) >> 64 if vip.cookie_prefix else 0

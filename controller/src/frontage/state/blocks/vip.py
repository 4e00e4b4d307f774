# SPDX-License-Identifier: Apache-2.0
"""``vip.p4``: the packets of each VIP in both directions, and the VIP's policy."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.hash_tables import slots
from frontage.config.vips import Policy, Protocol, Server, Vip
from frontage.fields import IPAddress
from frontage.p4.entries import Action, Key, State
from frontage.state.blocks.assign import pool
from frontage.state.resolved import ResolvedServer, ResolvedVip
from frontage.state.scores import FLOW_UNIT

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
    # These three differ only in the score tables of their servers' classes.
    Policy.CCLB4: 4,
    Policy.CCLB4_CURRENT: 4,
    Policy.CCLB4_FUTURE: 4,
}


def entries(vips: Iterable[ResolvedVip], vteps: Iterable[IPAddress]) -> State:
    """Return the entries. ``vteps`` are the tunnel endpoint addresses of this switch."""
    state: State = {_address_key(address): Action("no_service") for address in vteps}
    for vip in vips:
        state |= _vip_entries(vip)
        for server in vip.servers:
            key, action = server_entry(vip, server)
            state[key] = action
    return state


def _vip_entries(vip: ResolvedVip) -> State:
    config = vip.config
    match = (int(config.address), config.protocol.number, config.port)
    state: State = {
        Key(VIP4 if config.address.version == 4 else VIP6, match): Action("set_vip", (vip.id,)),
        _address_key(config.address): Action("no_service"),
    }
    if config.cookie_prefix is not None:
        prefix = _prefix(config)
        state[Key(COOKIE_ADDRESS, (prefix, config.port))] = Action("set_cookie_address", (vip.id,))
        state[Key(COOKIE_PREFIX, (prefix,))] = Action("no_service")
    key, action = policy_entry(vip, len(pool([server.config for server in vip.servers])))
    state[key] = action
    return state


def policy_entry(vip: ResolvedVip, pool_size: int) -> tuple[Key, Action]:
    """Return the entry of the VIP's policy, for a pool of ``pool_size`` entries."""
    maglev_mask = slots(len(vip.hashed), vip.room) - 1
    params = (_POLICIES[vip.config.policy], FLOW_UNIT, vip.tree.base, vip.tree.depth, pool_size, maglev_mask)
    return Key(POLICY, (vip.id,)), Action("set_policy", params)


_FROM_SERVER = {DIP4: "from_server4", DIP6: "from_server6", QUIC_DIP6: "from_quic_server6"}


def server_entry(vip: ResolvedVip, server: ResolvedServer) -> tuple[Key, Action]:
    """Return the entry that matches packets from ``server``."""
    key = dip(server.config, vip.config)
    params: tuple[int, ...] = (
        server.config.sid,
        vip.id,
        server.slot,
        int(server.config.active),
        server.score_class,
        int(vip.config.address),
        vip.config.port,
    )
    if key.table == QUIC_DIP6:
        params += (int(server.config.address) & _INTERFACE_ID, _prefix(vip.config))
    return key, Action(_FROM_SERVER[key.table], params)


def dip(server: Server, vip: Vip) -> Key:
    """Return the key of the entry that matches packets from ``server``."""
    address = int(server.address)
    if server.address.version == 4:
        return Key(DIP4, (address, vip.protocol.number, server.port))
    if vip.protocol is Protocol.TCP:
        return Key(DIP6, (address, server.port))
    return Key(QUIC_DIP6, (address >> 64, server.port))


def _address_key(address: IPAddress) -> Key:
    return Key(ADDRESS4 if address.version == 4 else ADDRESS6, (int(address),))


def _prefix(vip: Vip) -> int:
    """Return the upper half of the VIP's cookie addresses, or 0 if it has none."""
    return int(vip.cookie_prefix.network_address) >> 64 if vip.cookie_prefix else 0

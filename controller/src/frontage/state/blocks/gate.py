# SPDX-License-Identifier: Apache-2.0
"""Entries that a program in several pipes needs twice (`p4src/tna/folded`), because a pipe cannot read another pipe's tables.

The gate has the roles of the ports (``gate.p4``), the egress of the edge the endpoints (``inner.p4``), and the core the routes to
the other ends of tunnels (``core.p4``).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from frontage.config.network import Port
from frontage.config.routing import PrefixTable
from frontage.fields import IPAddress, IPNetwork
from frontage.p4.entries import Action, Key, State
from frontage.p4.p4info import Schema
from frontage.state.blocks import encapsulation, forwarding, tunnel
from frontage.state.blocks.ports import ROLES

PORT = "tunnel.port"
ROUTE = "remote_route.remote"
_NESTED = {tunnel.ENDPOINT4: "nested.endpoint4", tunnel.ENDPOINT6: "nested.endpoint6"}
COPIES = (*_NESTED.values(), PORT)
TABLES = (*COPIES, ROUTE)
_VERSIONS = {"set_tunnel4": 4, "set_tunnel6": 6}
_ROUTES = {forwarding.IPV4_LPM: 4, forwarding.IPV6_LPM: 6}


def entries(schema: Schema, ports: Iterable[Port], state: State) -> State:
    """Return the entries that ``state`` implies in these tables, if the program has them."""
    if PORT not in schema.tables:
        return {}
    roles = {Key(PORT, (port.id,)): Action("set_role", (ROLES[port.role],)) for port in ports}
    endpoints = {Key(_NESTED[key.table], key.match): action for key, action in state.items() if key.table in _NESTED}
    return roles | endpoints | routes(schema, state, state)


def routes(schema: Schema, tunnels: State, network: State) -> State:
    """Return the next hops of tunnels, if the program has them. ``network`` are the entries with the routes.

    Tunnels without a route are left out.
    """
    if ROUTE not in schema.tables:
        return {}
    table = PrefixTable(_prefixes(network))
    state: State = {}
    for key, action in tunnels.items():
        if key.table == encapsulation.REMOTE and action.name in _VERSIONS:
            route = table.lookup(_address(action.params[-1], _VERSIONS[action.name]))
            if route is not None:
                state[Key(ROUTE, key.match)] = route
    return state


def _prefixes(network: State) -> Iterable[tuple[IPNetwork, Action]]:
    for key, action in network.items():
        version = _ROUTES.get(key.table)
        if version is not None:
            prefix = key.match[0]
            assert isinstance(prefix, tuple)
            value, length = prefix
            yield ip_network((_address(value, version), length)), action


def _address(value: int, version: int) -> IPAddress:
    return ip_address(value.to_bytes(4 if version == 4 else 16, "big"))

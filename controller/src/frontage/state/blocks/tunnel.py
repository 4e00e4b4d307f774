# SPDX-License-Identifier: Apache-2.0
"""``tunnel.p4``: the known tunnel endpoints, who may send through a tunnel, and which packets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from frontage.config.network import Role
from frontage.config.sites import Dispatcher, OwnSite, Site
from frontage.config.vips import Server
from frontage.fields import IPAddress
from frontage.p4.entries import Action, Key, State
from frontage.state.blocks import encapsulation, remote_servers
from frontage.state.blocks.ports import ROLES
from frontage.state.resolved import ResolvedVip, replicas

ENDPOINT4 = "tunnel.endpoint4"
ENDPOINT6 = "tunnel.endpoint6"
PEER4 = "tunnel.peer4"
PEER6 = "tunnel.peer6"
ORIGIN = "tunnel.origin"
SOURCE4 = "tunnel.source4"
SOURCE6 = "tunnel.source6"
SOURCES = (SOURCE4, SOURCE6)
PEERS = (PEER4, PEER6)
ENDPOINTS = (ENDPOINT4, ENDPOINT6)
TABLES = (*SOURCES, ORIGIN, *PEERS, *ENDPOINTS)

ANY_SERVICE = 0
"""The source set that contains every service address."""


def entries(own: OwnSite, other_sites: Sequence[Site], dispatchers: Iterable[Dispatcher], vips: tuple[ResolvedVip, ...]) -> State:
    state: State = {Key(ORIGIN, (0, own.id)): Action("deliver_response")}
    for site in other_sites:
        state[Key(ORIGIN, (site.id, own.id))] = Action("deliver_response")
        state[Key(ORIGIN, (site.id, site.id))] = Action("accept_first_flight")
        state[Key(ORIGIN, (0, site.id))] = Action("forward_response", (site.id,))
    source_sets = encapsulation.source_sets((server.tunnel_endpoint, server.sid) for server in replicas(vips))
    for address, role, site_id, source_set in _peers(source_sets, dispatchers, other_sites):
        state[_key(ENDPOINT4, ENDPOINT6, address)] = Action("remote_endpoint")
        state[_key(PEER4, PEER6, address, ROLES[role])] = Action("set_peer", (site_id, source_set))
    for address in own.vtep:
        state[_key(ENDPOINT4, ENDPOINT6, address)] = Action("local_endpoint")
    for vip in vips:
        if vip.config.has_replicas:
            service = vip.config
            table = SOURCE4 if service.address.version == 4 else SOURCE6
            members = {source_sets[server.config.tunnel_endpoint] for server in vip.servers}
            for source_set in {ANY_SERVICE, *members}:
                state[Key(table, (source_set, int(service.address), service.port))] = Action("NoAction")
    return state


def server_entries(servers: Sequence[Server]) -> State:
    """Return the endpoints of remote servers, and those from which answers come."""
    state: State = {
        _key(ENDPOINT4, ENDPOINT6, server.destination): Action("remote_endpoint") for server in servers if server.remote is not None
    }
    for address, source_set in remote_servers.source_sets(servers).items():
        state[_key(PEER4, PEER6, address, ROLES[Role.SERVER])] = Action("set_server_peer", (source_set,))
    return state


def _peers(
    source_sets: Mapping[IPAddress, int], dispatchers: Iterable[Dispatcher], other_sites: Iterable[Site]
) -> Iterator[tuple[IPAddress, Role, int, int]]:
    """Yield the address, role, site and source set of every peer. A dispatcher overrides a replica with the same address."""
    for address, source_set in source_sets.items():
        yield address, Role.SERVER, 0, source_set
    for dispatcher in dispatchers:
        yield dispatcher.address, Role.SERVER, 0, ANY_SERVICE
    for site in other_sites:
        for address in (site.vtep, *site.dispatchers):
            yield address, Role.SITE, site.id, ANY_SERVICE


def _key(table4: str, table6: str, address: IPAddress, *more: int) -> Key:
    return Key(table4 if address.version == 4 else table6, (int(address), *more))

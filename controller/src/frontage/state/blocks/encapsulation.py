# SPDX-License-Identifier: Apache-2.0
"""``encapsulation.p4``: the outer headers of the tunnels to sites, dispatchers, replicas and remote servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frontage.config.remote_servers import Encapsulation, EncapsulationKind
from frontage.config.sites import Dispatcher, OwnSite, Site, TunnelKind
from frontage.config.vips import Server
from frontage.fields import IPAddress
from frontage.limits import DISPATCHER_SLOTS
from frontage.p4.entries import Action, Key, State

REMOTE = "encapsulation.remote"
TABLES = (REMOTE,)

SITE, DISPATCHER, REPLICA, SERVER = 1, 2, 3, 4
"""Kinds of remote endpoints."""

_KINDS = {TunnelKind.VXLAN: 1, TunnelKind.GRE: 2}
_KEYLESS_GRE = 4
_SERVER_KINDS = {EncapsulationKind.VXLAN: 1, EncapsulationKind.GRE: 2, EncapsulationKind.GENEVE: 3, EncapsulationKind.IPIP: 5}


def entries(own: OwnSite, other_sites: Iterable[Site], dispatchers: Sequence[Dispatcher], replicas: Iterable[Server]) -> State:
    state = site_tunnels(own, other_sites, REMOTE)
    if dispatchers:
        for slot in range(DISPATCHER_SLOTS):
            dispatcher = dispatchers[slot % len(dispatchers)]
            state[Key(REMOTE, (DISPATCHER, slot))] = _tunnel(own, dispatcher.address)
    for server in replicas:
        state[Key(REMOTE, (REPLICA, server.sid))] = _tunnel(own, server.tunnel_endpoint)
    return state


def server_entries(own: OwnSite, servers: Iterable[Server]) -> State:
    """Return the tunnels to the remote ones of these servers."""
    state: State = {}
    for server in servers:
        if server.remote is not None:
            to = server.destination
            tunnel = (number(server.remote), server.remote.tunnel_id, server.remote.path_mtu(to.version))
            ends = (int(_source(own, to)), int(to))
            state[Key(REMOTE, (SERVER, server.sid))] = Action(f"set_server_tunnel{to.version}", (*tunnel, *ends))
    return state


def source_sets(ends: Iterable[tuple[IPAddress, int]]) -> dict[IPAddress, int]:
    """Return a source set for each tunnel endpoint of these pairs of endpoint and SID: one more than the smallest SID there."""
    sets: dict[IPAddress, int] = {}
    for address, sid in ends:
        sets[address] = min(sid + 1, sets.get(address, sid + 1))
    return sets


def number(tunnel: Encapsulation) -> int:
    """Return the number of the tunnel's kind in the P4 program."""
    is_keyless = tunnel.kind is EncapsulationKind.GRE and tunnel.key is None
    return _KEYLESS_GRE if is_keyless else _SERVER_KINDS[tunnel.kind]


def site_tunnels(own: OwnSite, other_sites: Iterable[Site], table: str) -> State:
    """Return the tunnels to the other sites as entries of ``table``."""
    return {Key(table, (SITE, site.id)): _tunnel(own, site.vtep, site.tunnel) for site in other_sites}


def _tunnel(own: OwnSite, to: IPAddress, kind: TunnelKind = TunnelKind.VXLAN) -> Action:
    return Action(f"set_tunnel{to.version}", (_KINDS[kind], int(_source(own, to)), int(to)))


def _source(own: OwnSite, to: IPAddress) -> IPAddress:
    source = own.vtep_of(to.version)
    assert source is not None, "config.checks rejects endpoints of other IP versions"
    return source

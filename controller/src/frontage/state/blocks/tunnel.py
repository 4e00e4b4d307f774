"""``tunnel.p4``: the ends of tunnels that we know, who may send through one, and what."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config import Config
from frontage.config.network import Role
from frontage.config.vips import Server
from frontage.fields import IPAddress
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation
from frontage.state.blocks.ports import ROLES

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
"""The group of those who may answer from every service address."""


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    if config.site is None:
        return state
    own = config.site.id
    state[Key(ORIGIN, (0, own))] = Action("deliver_response")
    for site in config.other_sites:
        state[Key(ORIGIN, (site.id, own))] = Action("deliver_response")
        state[Key(ORIGIN, (site.id, site.id))] = Action("accept_first_flight")
        state[Key(ORIGIN, (0, site.id))] = Action("forward_response", (site.id,))
    for address, role, site_id, group in _peers(config):
        state[_key(ENDPOINT4, ENDPOINT6, address)] = Action("remote_endpoint")
        state[_key(PEER4, PEER6, address, ROLES[role])] = Action("set_peer", (site_id, group))
    for address in config.site.vtep:
        state[_key(ENDPOINT4, ENDPOINT6, address)] = Action("local_endpoint")
    groups = _groups(config)
    for vip in config.vips:
        if vip.artemis is not None:
            table = SOURCE4 if vip.address.version == 4 else SOURCE6
            members = {groups[server.tunnel_end] for server in config.servers_by_vip[vip.name]}
            for group in {ANY_SERVICE, *members}:
                state[Key(table, (group, int(vip.address), vip.port))] = Action("NoAction")
    return state


def replicas(config: Config) -> Iterator[Server]:
    """The servers of service addresses."""
    services = {vip.name for vip in config.vips if vip.artemis is not None}
    return (server for server in config.servers if server.vip in services)


def _groups(config: Config) -> dict[IPAddress, int]:
    """A number for what answers from each replica's address: one more than the least SID there."""
    groups: dict[IPAddress, int] = {}
    for server in replicas(config):
        groups[server.tunnel_end] = min(server.sid + 1, groups.get(server.tunnel_end, server.sid + 1))
    return groups


def _peers(config: Config) -> Iterator[tuple[IPAddress, Role, int, int]]:
    """Address, side of the switch, site, and group of what it may answer from. A dispatcher may share a replica's address."""
    for address, group in _groups(config).items():
        yield address, Role.SERVER, 0, group
    for dispatcher in config.dispatchers:
        yield dispatcher.address, Role.SERVER, 0, ANY_SERVICE
    for site in config.other_sites:
        for address in (site.vtep, *site.dispatchers):
            yield address, Role.SITE, site.id, ANY_SERVICE


def _key(table4: str, table6: str, address: IPAddress, *more: int) -> Key:
    return Key(table4 if address.version == 4 else table6, (int(address), *more))

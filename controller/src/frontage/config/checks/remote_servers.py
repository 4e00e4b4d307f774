# SPDX-License-Identifier: Apache-2.0
"""Checks of remote servers: their tunnels, endpoints, routes and MTUs."""

from __future__ import annotations

from collections.abc import Iterator

from frontage import limits
from frontage.config.checks.findings import Finding
from frontage.config.document import Path
from frontage.config.remote_servers import MIN_PATH_MTU, Encapsulation, EncapsulationKind
from frontage.config.routing import RoutingTable
from frontage.config.schema import Config
from frontage.config.vips import Server
from frontage.fields import IPAddress


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of remote servers, and of the tunnels to discovered servers."""
    for i, server in enumerate(config.servers):
        if server.encapsulation is not None:
            yield from _parameters(("servers", i, "encapsulation"), server.encapsulation)
    yield from _sources(config)
    remote = [(i, server, server.remote) for i, server in enumerate(config.servers) if server.remote is not None]
    if not remote:
        return
    ends = _Ends(config)
    for i, server, tunnel in remote:
        path: Path = ("servers", i, "encapsulation")
        if server.vip in ends.services:
            yield _of_artemis(path, server.vip)
            continue
        at: Path = (*path, "endpoint") if tunnel.endpoint is not None else ("servers", i, "address")
        yield from ends.check(at, server.destination)
        yield from _mtu(config, path, server.vip, server.destination.version, tunnel)
    yield from check_room(config)


def _sources(config: Config) -> Iterator[Finding]:
    """Yield the problems of `vips[].discovery.encapsulation`."""
    found = ((i, vip, vip.discovery.encapsulation) for i, vip in enumerate(config.vips) if vip.discovery is not None)
    for i, vip, tunnel in found:
        if tunnel is None:
            continue
        path: Path = ("vips", i, "discovery", "encapsulation")
        yield from _parameters(path, tunnel)
        if tunnel.kind is EncapsulationKind.NONE:
            continue
        ends = _Ends(config)
        if vip.name in ends.services:
            yield _of_artemis(path, vip.name)
        elif tunnel.endpoint is not None:
            yield from ends.check((*path, "endpoint"), tunnel.endpoint)
            yield from _mtu(config, path, vip.name, tunnel.endpoint.version, tunnel)
        elif config.site is None:
            yield Finding(path, *_NO_VTEP)
        else:
            yield from _mtu(config, path, vip.name, vip.address.version, tunnel)


def check_room(config: Config) -> Iterator[Finding]:
    """Yield a problem if the P4 program has no room for all remote servers."""
    remote = [server for server in config.servers if server.remote is not None]
    with_replicas = {vip.name for vip in config.vips if vip.has_replicas}
    ends = len({server.destination for server in remote})
    others = len(config.sites) + sum(len(site.dispatchers) for site in config.sites) + len(config.dispatchers)
    others += sum(server.vip in with_replicas for server in config.servers)
    if len(remote) + ends + others + limits.DISPATCHER_SLOTS > limits.MAX_TUNNEL_ENDPOINTS:
        what = f"{len(remote)} remote servers behind {ends} endpoints, more than the P4 program has room for"
        yield Finding(("servers",), what, "remove some", at_key=True)


class DiscoveredCheck:
    """Finds discovered servers that a switch cannot reach through their tunnels."""

    def __init__(self, config: Config) -> None:
        """``config`` is the file's."""
        self._ends = [_Ends(own) for own in config.switches]

    def problem(self, server: Server) -> str | None:
        """Return what is wrong with a discovered server; None for one without a tunnel."""
        tunnel = server.remote
        if tunnel is None:
            return None
        version = server.destination.version
        for ends in self._ends:
            for found in (*ends.check((), server.destination), *_mtu(ends.config, (), server.vip, version, tunnel)):
                return f"server {server.address} port {server.port}: {found.what}: {found.fix}"
        return None


_NO_VTEP = ("this switch has no tunnel endpoint", "add `site` with `id` and `vtep`")


def _of_artemis(path: Path, vip: str) -> Finding:
    what = f"VIP {vip} is a service address, whose replicas the switch reaches through tunnels already"
    return Finding(path, what, "remove it", at_key=True)


class _Ends:
    """The ends that tunnels of one switch can have."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.services = {vip.name for vip in config.vips if vip.artemis is not None}
        self._routing = RoutingTable(config.routes, config.on_link_hosts)
        self._roles = {port.name: port.role for port in config.ports}
        self._taken = _taken(config)

    def check(self, at: Path, endpoint: IPAddress) -> Iterator[Finding]:
        """Yield the problems of a tunnel that ends at this address."""
        yield from _endpoint(self.config, at, endpoint, self._taken)
        hop = self._routing.lookup(endpoint)
        if hop is None or self._roles.get(hop.port) != "server":
            what = f"no route to {endpoint} by a port of role 'server'"
            yield Finding(at, what, "add one to `routes` or `neighbors`, by a port of this role: tunnels use no other ports")


def _parameters(path: Path, tunnel: Encapsulation) -> Iterator[Finding]:
    """Yield the parameters that do not belong to the kind."""
    if tunnel.kind is EncapsulationKind.NONE:
        for name in sorted(tunnel.model_fields_set - {"kind"}):
            yield Finding((*path, name), f'unknown key "{name}" for none', "remove it", at_key=True)
        return
    if tunnel.vni is not None and not tunnel.kind.has_vni:
        yield Finding((*path, "vni"), f"{tunnel.kind} has no VNI", "remove it", at_key=True)
    if tunnel.key is not None and tunnel.kind is not EncapsulationKind.GRE:
        yield Finding((*path, "key"), f"{tunnel.kind} has no key", "remove it", at_key=True)


def _taken(config: Config) -> dict[IPAddress, str]:
    """Return the addresses that no tunnel to a remote server can end at, with what they are."""
    taken = {vip.address: f"the address of VIP {vip.name}" for vip in config.vips}
    taken |= {gateway.ip: f"a gateway of port {port.name}" for port in config.ports for gateway in port.gateways}
    taken |= dict.fromkeys(config.site.vtep if config.site else (), "this site's vtep")
    taken |= {site.vtep: f"the vtep of site {site.id}" for site in config.other_sites}
    taken |= {address: f"a dispatcher of site {site.id}" for site in config.sites for address in site.dispatchers}
    taken |= {dispatcher.address: f"dispatcher {dispatcher.name}" for dispatcher in config.dispatchers}
    with_replicas = {vip.name for vip in config.vips if vip.has_replicas}
    return taken | {s.tunnel_endpoint: f"the tunnel endpoint of replica {s.name}" for s in config.servers if s.vip in with_replicas}


def _endpoint(config: Config, at: Path, endpoint: IPAddress, taken: dict[IPAddress, str]) -> Iterator[Finding]:
    if endpoint in taken:
        yield Finding(at, f"{endpoint} is {taken[endpoint]}", "use another address for the tunnel endpoint")
    if endpoint.is_multicast or endpoint.is_loopback or endpoint.is_unspecified:
        yield Finding(at, f"no tunnel can end at {endpoint}", "use a unicast address")
    if config.site is None:
        yield Finding(at, *_NO_VTEP)
    elif config.site.vtep_of(endpoint.version) is None:
        what = f"{endpoint} is IPv{endpoint.version}, but this switch has no IPv{endpoint.version} vtep"
        yield Finding(at, what, "add one to `site.vtep`")


def _mtu(config: Config, path: Path, vip: str, version: int, tunnel: Encapsulation) -> Iterator[Finding]:
    """Check that packets fit into the tunnel: those that IPv6 and QUIC need, and any segment of TCP over IPv4."""
    needs = {one.name: one.protocol == "udp" or one.address.version == 6 for one in config.vips}
    room = tunnel.path_mtu(version)
    if needs.get(vip, False) and room < MIN_PATH_MTU:
        what = (
            f"{tunnel.kind} over IPv{version} leaves {room} bytes of an MTU of {tunnel.mtu}, but QUIC and IPv6 need {MIN_PATH_MTU}"
        )
        fix = f"use a network that carries {MIN_PATH_MTU + tunnel.overhead(version)} bytes, and say so in `mtu`"
        yield Finding((*path, "mtu"), what, fix)

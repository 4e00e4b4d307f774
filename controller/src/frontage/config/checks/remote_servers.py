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
    """Yield the problems of remote servers."""
    for i, server in enumerate(config.servers):
        if server.encapsulation is not None:
            yield from _parameters(("servers", i, "encapsulation"), server.encapsulation)
    remote = [(i, server, server.remote) for i, server in enumerate(config.servers) if server.remote is not None]
    if not remote:
        return
    artemis = {vip.name for vip in config.vips if vip.artemis is not None}
    routing, roles = RoutingTable(config.routes, config.on_link_hosts), {port.name: port.role for port in config.ports}
    taken = _taken(config)
    for i, server, tunnel in remote:
        path: Path = ("servers", i, "encapsulation")
        if server.vip in artemis:
            what = f"VIP {server.vip} is a service address, whose replicas the switch reaches through tunnels already"
            yield Finding(path, what, "remove it", at_key=True)
            continue
        at: Path = (*path, "endpoint") if tunnel.endpoint is not None else ("servers", i, "address")
        yield from _endpoint(config, at, server.destination, taken)
        hop = routing.lookup(server.destination)
        if hop is None or roles.get(hop.port) != "server":
            what = f"no route to {server.destination} by a port of role 'server'"
            yield Finding(at, what, "add one to `routes` or `neighbors`, by a port of this role: tunnels use no other ports")
        yield from _mtu(config, path, server, tunnel)
    ends = len({server.destination for _, server, _ in remote})
    others = len(config.sites) + sum(len(site.dispatchers) for site in config.sites) + len(config.dispatchers)
    others += sum(server.vip in artemis for server in config.servers)
    if len(remote) + ends + others + limits.DISPATCHER_SLOTS > limits.MAX_TUNNEL_ENDPOINTS:
        what = f"{len(remote)} remote servers behind {ends} endpoints, more than the P4 program has room for"
        yield Finding(("servers",), what, "remove some", at_key=True)


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
    artemis = {vip.name for vip in config.vips if vip.artemis is not None}
    return taken | {s.tunnel_endpoint: f"the tunnel endpoint of replica {s.name}" for s in config.servers if s.vip in artemis}


def _endpoint(config: Config, at: Path, endpoint: IPAddress, taken: dict[IPAddress, str]) -> Iterator[Finding]:
    if endpoint in taken:
        yield Finding(at, f"{endpoint} is {taken[endpoint]}", "use another address for the tunnel endpoint")
    if endpoint.is_multicast or endpoint.is_loopback or endpoint.is_unspecified:
        yield Finding(at, f"no tunnel can end at {endpoint}", "use a unicast address")
    if config.site is None:
        yield Finding(at, "this switch has no tunnel endpoint", "add `site` with `id` and `vtep`")
    elif config.site.vtep_of(endpoint.version) is None:
        what = f"{endpoint} is IPv{endpoint.version}, but this switch has no IPv{endpoint.version} vtep"
        yield Finding(at, what, "add one to `site.vtep`")


def _mtu(config: Config, path: Path, server: Server, tunnel: Encapsulation) -> Iterator[Finding]:
    """Check that packets fit into the tunnel: those that IPv6 and QUIC need, and any segment of TCP over IPv4."""
    needs = {vip.name: vip.protocol == "udp" or vip.address.version == 6 for vip in config.vips}
    version = server.destination.version
    room = tunnel.path_mtu(version)
    if needs.get(server.vip, False) and room < MIN_PATH_MTU:
        what = (
            f"{tunnel.kind} over IPv{version} leaves {room} bytes of an MTU of {tunnel.mtu}, but QUIC and IPv6 need {MIN_PATH_MTU}"
        )
        fix = f"use a network that carries {MIN_PATH_MTU + tunnel.overhead(version)} bytes, and say so in `mtu`"
        yield Finding((*path, "mtu"), what, fix)

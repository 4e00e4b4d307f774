# SPDX-License-Identifier: Apache-2.0
"""Checks of real servers."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address

from frontage import limits
from frontage.config.checks.findings import Finding, duplicates, unknown_name
from frontage.config.document import Path
from frontage.config.real_servers import RealServer, senders
from frontage.config.routing import RoutingTable
from frontage.config.schema import Config
from frontage.fields import IPAddress


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of real servers."""
    names = ((("real_servers", i, "name"), r.name) for i, r in enumerate(config.real_servers))
    yield from duplicates(names, 'duplicate real server name "{}"', "rename one of the real servers")
    for i, real_server in enumerate(config.real_servers):
        yield from _port(config, ("real_servers", i, "port"), real_server.port)
        yield from _for(config, ("real_servers", i, "for"), real_server)
    yield from _metrics(config)
    yield from _addresses(config)
    yield from _servers(config)
    yield from _sizes(config)


def _port(config: Config, path: Path, name: str) -> Iterator[Finding]:
    roles = {port.name: port.role for port in config.ports}
    if name not in roles:
        yield unknown_name(path, "port", name, sorted(roles), "`ports`")
    elif roles[name] != "real-server":
        what = f"port {name} has role '{roles[name]}', not 'real-server'"
        yield Finding(path, what, "change the role of the port, or use another port")


def _for(config: Config, path: Path, real_server: RealServer) -> Iterator[Finding]:
    servers = {server.name: server for server in config.servers}
    vips = {vip.name: vip for vip in config.vips}
    for i, name in enumerate(real_server.senders):
        # If the field is a single name instead of a list, the position is that of the field.
        at: Path = (*path, i)
        if name in servers and name in vips:
            yield Finding(at, f'"{name}" is the name of a server and of a VIP', "rename one of them")
            continue
        vip = vips.get(servers[name].vip if name in servers else name)
        if name not in servers and vip is None:
            yield unknown_name(at, "server or VIP", name, [*vips, *servers], "`servers` or `vips`")
        elif vip is not None and vip.protocol != "udp":
            yield Finding(at, f"VIP {vip.name} uses TCP, but real servers need QUIC", "remove it")


def _metrics(config: Config) -> Iterator[Finding]:
    tcp = {vip.name for vip in config.vips if vip.protocol == "tcp"}
    for i, server in enumerate(config.servers):
        if server.metrics is not None and server.vip in tcp:
            what = f"VIP {server.vip} uses TCP, but the agents of QUIC servers count streams"
            yield Finding(("servers", i, "metrics"), what, "remove it")


def _addresses(config: Config) -> Iterator[Finding]:
    """Check that nothing else has the address of a real server: packets to it from outside are dropped."""
    taken: dict[IPAddress, str] = {vip.address: f"the address of VIP {vip.name}" for vip in config.vips}
    taken |= {gateway.ip: f"a gateway of port {port.name}" for port in config.ports for gateway in port.gateways}
    taken |= dict.fromkeys(config.site.vtep if config.site else (), "this site's vtep")
    prefixes = {vip.cookie_prefix: vip.name for vip in config.vips if vip.cookie_prefix is not None}
    udp = {vip.name for vip in config.vips if vip.protocol == "udp"}
    networks = {int(s.address) >> 64: s for s in config.servers if s.vip in udp and isinstance(s.address, IPv6Address)}
    for i, real_server in enumerate(config.real_servers):
        for j, address in enumerate(real_server.addresses):
            path: Path = ("real_servers", i, "addresses", j)
            shown = next((name for prefix, name in prefixes.items() if address in prefix), None)
            owner = networks.get(int(address) >> 64) if address.version == 6 else None
            if address in taken:
                yield Finding(path, f"{address} is {taken[address]}", "use another address for the real server")
            elif address.is_multicast or address.is_loopback or address.is_unspecified:
                yield Finding(path, f"invalid address {address}", "use a unicast address")
            elif shown is not None:
                yield Finding(path, f"{address} is in the cookie prefix of VIP {shown}", "use an address outside of it")
            elif owner is not None and owner.address not in real_server.addresses:
                what = f"{address} is in the /64 of server {owner.name}, all of which belongs to that server"
                yield Finding(path, what, "use an address outside of it")


def _servers(config: Config) -> Iterator[Finding]:
    """Check that a server behind a port of real servers is a real server itself."""
    ports = {port.name for port in config.ports if port.role == "real-server"}
    if not ports:
        return
    routing = RoutingTable(config.routes, config.on_link_hosts)
    own = {(real_server.port, address) for real_server in config.real_servers for address in real_server.addresses}
    for i, server in enumerate(config.servers):
        if server.remote is not None:
            continue
        hop = routing.lookup(server.address)
        if hop is not None and hop.port in ports and (hop.port, server.address) not in own:
            what = f"{server.address} is behind port {hop.port} of role 'real-server', which drops its packets"
            fix = "add the address to a real server, or change the role of the port to 'server'"
            yield Finding(("servers", i, "address"), what, fix)


def _sizes(config: Config) -> Iterator[Finding]:
    field = ("real_servers",)
    for version in (4, 6):
        count = sum(address.version == version for real_server in config.real_servers for address in real_server.addresses)
        if count > limits.MAX_REAL_SERVERS:
            what = f"{count} IPv{version} addresses of real servers, but the P4 program has room for {limits.MAX_REAL_SERVERS}"
            yield Finding(field, what, "remove some", at_key=True)
    count = len(senders(config.real_servers, config.servers))
    if count > limits.MAX_SENDERS:
        what = f"{count} pairs of a port and a server that sends through it, but the P4 program has room for {limits.MAX_SENDERS}"
        yield Finding(field, what, "let real servers send for fewer servers", at_key=True)

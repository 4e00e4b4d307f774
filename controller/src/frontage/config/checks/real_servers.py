"""What a schema cannot say of real servers."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address

from frontage import limits
from frontage.config.checks.findings import Finding, duplicates
from frontage.config.document import Path
from frontage.config.real_servers import RealServer, senders
from frontage.config.routing import RoutingTable
from frontage.config.schema import Config
from frontage.fields import IPAddress


def check(config: Config) -> Iterator[Finding]:
    names = ((("real_servers", i, "name"), r.name) for i, r in enumerate(config.real_servers))
    yield from duplicates(names, "real server name {} is used twice", "rename one")
    for i, real_server in enumerate(config.real_servers):
        yield from _port(config, ("real_servers", i, "port"), real_server.port)
        yield from _for(config, ("real_servers", i, "for"), real_server)
    yield from _addresses(config)
    yield from _servers(config)
    yield from _sizes(config)


def _port(config: Config, path: Path, name: str) -> Iterator[Finding]:
    roles = {port.name: port.role for port in config.ports}
    if name not in roles:
        yield Finding(path, f"there is no port {name}", f"name one of: {', '.join(sorted(roles))}")
    elif roles[name] != "real-server":
        what = f"port {name} has role '{roles[name]}', by which the switch cannot tell real servers from others"
        yield Finding(path, what, "give the port the role 'real-server', or name one that has it")


def _for(config: Config, path: Path, real_server: RealServer) -> Iterator[Finding]:
    servers = {server.name: server for server in config.servers}
    vips = {vip.name: vip for vip in config.vips}
    for i, name in enumerate(real_server.senders):
        # Where the field is one name and no list, the position is the field's own.
        at: Path = (*path, i)
        if name in servers and name in vips:
            yield Finding(at, f"{name} is a server and a VIP", "rename one of them")
            continue
        vip = vips.get(servers[name].vip if name in servers else name)
        if name not in servers and vip is None:
            known = ", ".join([*vips, *servers][:8]) or "none is defined yet"
            yield Finding(at, f"there is no server or VIP {name}", f"name some of `servers` or `vips`: {known}")
        elif vip is not None and vip.protocol != "udp":
            yield Finding(at, f"VIP {vip.name} is TCP, and only QUIC's streams have real servers", "remove it")


def _addresses(config: Config) -> Iterator[Finding]:
    """A real server's own are nobody else's: what comes to them from outside is dropped."""
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
                yield Finding(path, f"{address} is {taken[address]}", "give the real server an address of its own")
            elif address.is_multicast or address.is_loopback or address.is_unspecified:
                yield Finding(path, f"nobody can send to {address}", "use a unicast address")
            elif shown is not None:
                yield Finding(path, f"{address} lies in the cookie prefix of VIP {shown}", "give an address outside of it")
            elif owner is not None and owner.address not in real_server.addresses:
                what = f"{address} lies in the /64 of server {owner.name}, from all of which that sends"
                yield Finding(path, what, "give an address outside of it")


def _servers(config: Config) -> Iterator[Finding]:
    """A server may stand where real servers do, if it is one of them."""
    ports = {port.name for port in config.ports if port.role == "real-server"}
    if not ports:
        return
    routing = RoutingTable(config.routes, config.on_link_hosts)
    own = {(real_server.port, address) for real_server in config.real_servers for address in real_server.addresses}
    for i, server in enumerate(config.servers):
        hop = routing.lookup(server.address)
        if hop is not None and hop.port in ports and (hop.port, server.address) not in own:
            what = f"{server.address} is behind port {hop.port}, of real servers, and is none of theirs: what it sends is dropped"
            fix = "add it to the `addresses` of one, or give the port the role 'server'"
            yield Finding(("servers", i, "address"), what, fix)


def _sizes(config: Config) -> Iterator[Finding]:
    field = ("real_servers",)
    for version in (4, 6):
        count = sum(address.version == version for real_server in config.real_servers for address in real_server.addresses)
        if count > limits.MAX_REAL_SERVERS:
            what = f"{count} IPv{version} addresses of real servers, the P4 program has room for {limits.MAX_REAL_SERVERS}"
            yield Finding(field, what, "remove some", at_key=True)
    count = len(senders(config.real_servers, config.servers))
    if count > limits.MAX_SENDERS:
        what = f"{count} pairs of a port and a server for which it may send, the P4 program has room for {limits.MAX_SENDERS}"
        yield Finding(field, what, "let real servers send for fewer servers", at_key=True)

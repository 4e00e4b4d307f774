# SPDX-License-Identifier: Apache-2.0
"""Checks of VIPs and servers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from frontage import limits
from frontage.config.checks.findings import Finding, duplicates, unknown_name
from frontage.config.checks.instances import is_collision
from frontage.config.document import Path
from frontage.config.schema import Config
from frontage.config.vips import Policy


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of VIPs and servers."""
    yield from _vips(config)
    yield from _servers(config)
    yield from _quic(config)
    yield from _slow_start(config)


def _vips(config: Config) -> Iterator[Finding]:
    vips = config.vips
    yield from duplicates(
        ((("vips", i, "name"), v.name) for i, v in enumerate(vips)), 'duplicate VIP name "{}"', "rename one of the VIPs"
    )
    yield from duplicates(
        (
            (("vips", i, "address"), _endpoint(v.address, v.protocol, v.port))
            for i, v in enumerate(vips)
            # The checks of instances report these.
            if not (config.instances and any(is_collision(other, v) for other in vips[:i]))
        ),
        "duplicate VIP address {}",
        "give one of the VIPs another address or port",
    )
    gateways = {gateway.ip for port in config.ports for gateway in port.gateways}
    for i, vip in enumerate(vips):
        if vip.address in gateways:
            yield Finding(("vips", i, "address"), f"{vip.address} is a gateway address of a port", "use another address")
        if vip.address.is_multicast or vip.address.is_loopback or vip.address.is_unspecified:
            yield Finding(("vips", i, "address"), f"clients cannot connect to {vip.address}", "use a unicast address")


def _slow_start(config: Config) -> Iterator[Finding]:
    for i, vip in enumerate(config.vips):
        if vip.slow_start and vip.policy is Policy.CHEETAH_LL:
            what = "cheetah-ll ignores weights, so it cannot give a server a growing share"
            yield Finding(("vips", i, "slow_start"), what, "remove it, or use another policy", at_key=True)


def _endpoint(address: IPv4Address | IPv6Address, protocol: str, port: int) -> str:
    return f"{address} {'UDP port' if protocol == 'udp' else 'port'} {port}"


def _servers(config: Config) -> Iterator[Finding]:
    servers = config.servers
    vips = {vip.name: vip for vip in config.vips}
    yield from duplicates(
        ((("servers", i, "name"), s.name) for i, s in enumerate(servers)), 'duplicate server name "{}"', "rename one of the servers"
    )
    yield from duplicates(
        ((("servers", i, "sid"), s.sid) for i, s in enumerate(servers)),
        "duplicate sid {}",
        f"use a free one from 0 to {limits.MAX_SID}",
    )
    yield from duplicates(
        (
            (("servers", i, "address"), _endpoint(s.address, vips[s.vip].protocol if s.vip in vips else "tcp", s.port))
            for i, s in enumerate(servers)
        ),
        "duplicate server address {}",
        "give each server its own address or port: a server is one endpoint of one VIP",
    )
    hosts = {host.address for host in config.on_link_hosts}
    networks = {(r.prefix.version, r.prefix.prefixlen, int(r.prefix.network_address)) for r in config.routes}
    lengths = {(version, length) for version, length, _ in networks}
    for i, server in enumerate(servers):
        vip = vips.get(server.vip)
        if vip is None:
            yield unknown_name(("servers", i, "vip"), "VIP", server.vip, vips, "`vips`")
        elif vip.address.version != server.address.version:
            what = (
                f"{server.address} is IPv{server.address.version}, but VIP {vip.name} ({vip.address}) is IPv{vip.address.version}"
            )
            yield Finding(("servers", i, "address"), what, f"use an IPv{vip.address.version} address")
        if server.remote is not None:
            continue  # remote_servers.py checks the route
        bits = server.address.max_prefixlen
        reachable = server.address in hosts or any(
            (version, length, int(server.address) >> (bits - length) << (bits - length)) in networks
            for version, length in lengths
            if version == server.address.version
        )
        if not reachable:
            what = f"no route to {server.address}"
            yield Finding(("servers", i, "address"), what, "add the address to `neighbors`, or a prefix that covers it to `routes`")


def _quic(config: Config) -> Iterator[Finding]:
    """Yield violations of the requirements of QUIC services, and uses of options that only they have."""
    vips = {vip.name: vip for vip in config.vips}
    prefixes = [
        (("vips", i, "cookie_prefix"), f"{v.cookie_prefix} with port {v.port}")
        for i, v in enumerate(config.vips)
        if v.cookie_prefix
    ]
    yield from duplicates(prefixes, "duplicate cookie prefix {}", "give every service its own /64")
    for i, vip in enumerate(config.vips):
        udp, ipv6 = vip.protocol == "udp", vip.address.version == 6
        if vip.cookie_prefix and not (udp and ipv6):
            what = f"VIP {vip.name} uses {'UDP over IPv4' if udp else 'TCP'}, but cookie addresses need UDP over IPv6"
            yield Finding(("vips", i, "cookie_prefix"), what, "remove it")
        if udp and vip.policy == "cheetah-ll":
            what = "cheetah-ll counts FIN and RST, which QUIC encrypts"
            yield Finding(("vips", i, "policy"), what, "use cheetah-rr, or cclb4 over IPv6")
        if udp and not ipv6 and vip.policy.startswith("cclb4"):
            what = f"{vip.policy} needs the loads that servers report, which QUIC over IPv4 cannot carry"
            yield Finding(("vips", i, "policy"), what, "use hash or cheetah-rr, or an IPv6 address")

    ours = {vip.cookie_prefix for vip in config.vips if vip.cookie_prefix}
    networks: list[tuple[Path, Hashable]] = []
    routes = {r.prefix: r.port for r in config.routes if isinstance(r.prefix, IPv6Network)}
    lengths = sorted({prefix.prefixlen for prefix in routes if prefix.prefixlen <= 64}, reverse=True)
    outside = {port.name for port in config.ports if port.role == "client"}
    for i, server in enumerate(config.servers):
        served = vips.get(server.vip)
        if served is None or served.protocol != "udp" or not isinstance(server.address, IPv6Address):
            continue
        own = IPv6Network((int(server.address) >> 64 << 64, 64))
        networks.append((("servers", i, "address"), f"{own} UDP port {server.port}"))
        if own in ours:
            yield Finding(("servers", i, "address"), f"{server.address} is in a cookie prefix", "use an address outside of it")
        if server.remote is not None:
            continue
        covering = (own.supernet(new_prefix=length) for length in lengths)
        port = next((routes[prefix] for prefix in covering if prefix in routes), None)
        if served.cookie_prefix and (port is None or port in outside):
            what = f"no route to {own} on the server side, where this server has its cookie addresses"
            yield Finding(("servers", i, "address"), what, "add the prefix to `routes`")
    yield from duplicates(networks, "two servers send from {}", "move one of them: a QUIC server on IPv6 needs its own /64")

"""What a schema cannot say: names that must exist, numbers that must be unique, sizes that the P4 program has."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

from frontage import limits
from frontage.config.checks import real_servers, records, sites
from frontage.config.checks.findings import Finding, duplicates
from frontage.config.document import Path
from frontage.config.schema import Config
from frontage.mapping import checks as mapping_checks


def check(config: Config) -> list[Finding]:
    """Every contradiction in ``config``; empty when it can be installed."""
    return [
        *_ports(config),
        *_schedulers(config),
        *_forwarding(config),
        *_vips(config),
        *_servers(config),
        *_quic(config),
        *sites.check(config),
        *real_servers.check(config),
        *_keys(config),
        *_sizes(config),
        *mapping_checks.check_end_users(config),
        *mapping_checks.check_placement(config),
        *records.check(config),
    ]


def _ports(config: Config) -> Iterator[Finding]:
    ports = config.ports
    yield from duplicates(((("ports", i, "id"), p.id) for i, p in enumerate(ports)), "port id {} is used twice", "renumber one")
    yield from duplicates(((("ports", i, "name"), p.name) for i, p in enumerate(ports)), "port name {} is used twice", "rename one")
    for i, port in enumerate(ports):
        if port.id == config.device.cpu_port:
            yield Finding(("ports", i, "id"), f"port {port.id} is the CPU port", "give the number of another port")
    gateways = [(("ports", i, "gateways", j), g.ip) for i, p in enumerate(ports) for j, g in enumerate(p.gateways)]
    yield from duplicates(gateways, "gateway address {} is used twice", "give every gateway its own address")


def _schedulers(config: Config) -> Iterator[Finding]:
    for i, port in enumerate(config.ports):
        scheduler = port.scheduler
        if scheduler is None:
            continue
        path: Path = ("ports", i, "scheduler")
        if scheduler.kind != "aifo":
            ranked = {"default_rank"} if scheduler.ranks else set()
            for name in sorted(scheduler.model_fields_set - {"kind"} - ranked):
                yield Finding((*path, name), f"{scheduler.kind} has no {name}", "remove it", at_key=True)
            continue
        if scheduler.capacity is None:
            what = "aifo admits by how full the queue is, and does not know how many packets it holds"
            yield Finding((*path, "kind"), what, "add `capacity`, the packets of the port's queue")
            continue
        every = scheduler.report_every
        if every & (every - 1):
            yield Finding((*path, "report_every"), f"{every} is not a power of two", f"give {1 << every.bit_length() - 1}")
        elif every - 1 > Fraction(str(scheduler.k)) * scheduler.capacity:
            # As many departures may go unreported: an idle queue must still look short enough for any packet.
            most = 1 << (int(Fraction(str(scheduler.k)) * scheduler.capacity) + 1).bit_length() - 1
            what = f"{every - 1} departures may go unreported, and an idle queue would look fuller than k * capacity"
            yield Finding((*path, "report_every"), what, f"give at most {most}, or a larger k or capacity")


def _forwarding(config: Config) -> Iterator[Finding]:
    ports = {port.name for port in config.ports}
    known = f"name one of: {', '.join(sorted(ports))}"
    for i, route in enumerate(config.routes):
        if route.port not in ports:
            yield Finding(("routes", i, "port"), f"there is no port {route.port}", known)
    for i, neighbor in enumerate(config.neighbors):
        if neighbor.port not in ports:
            yield Finding(("neighbors", i, "port"), f"there is no port {neighbor.port}", known)
    prefixes: list[tuple[Path, Hashable]] = [(("routes", i, "prefix"), r.prefix) for i, r in enumerate(config.routes)]
    prefixes += [(("neighbors", i, "address"), ip_network(n.address)) for i, n in enumerate(config.neighbors)]
    prefixes += [
        (("real_servers", i, "addresses", j), ip_network(address))
        for i, r in enumerate(config.real_servers)
        for j, address in enumerate(r.addresses)
    ]
    yield from duplicates(prefixes, "there are two ways to {}", "keep one of them")


def _vips(config: Config) -> Iterator[Finding]:
    vips = config.vips
    yield from duplicates(((("vips", i, "name"), v.name) for i, v in enumerate(vips)), "VIP name {} is used twice", "rename one")
    yield from duplicates(
        ((("vips", i, "address"), _endpoint(v.address, v.protocol, v.port)) for i, v in enumerate(vips)),
        "two VIPs have address {}",
        "give one of them another address or port",
    )
    gateways = {gateway.ip for port in config.ports for gateway in port.gateways}
    for i, vip in enumerate(vips):
        if vip.address in gateways:
            yield Finding(("vips", i, "address"), f"{vip.address} is a gateway address of a port", "use an address of its own")
        if vip.address.is_multicast or vip.address.is_loopback or vip.address.is_unspecified:
            yield Finding(("vips", i, "address"), f"clients cannot connect to {vip.address}", "use a unicast address")


def _endpoint(address: IPv4Address | IPv6Address, protocol: str, port: int) -> str:
    return f"{address} {'UDP port' if protocol == 'udp' else 'port'} {port}"


def _quic(config: Config) -> Iterator[Finding]:
    """What QUIC services need, and what only they can have."""
    vips = {vip.name: vip for vip in config.vips}
    prefixes = [
        (("vips", i, "cookie_prefix"), f"{v.cookie_prefix} with port {v.port}")
        for i, v in enumerate(config.vips)
        if v.cookie_prefix
    ]
    yield from duplicates(prefixes, "two VIPs have cookie prefix {}", "give every service a /64 of its own")
    for i, vip in enumerate(config.vips):
        udp, ipv6 = vip.protocol == "udp", vip.address.version == 6
        if vip.cookie_prefix and not (udp and ipv6):
            what = f"VIP {vip.name} is {'UDP over IPv4' if udp else 'TCP'}, cookie addresses are for UDP over IPv6"
            yield Finding(("vips", i, "cookie_prefix"), what, "remove it")
        if udp and vip.policy == "cheetah-ll":
            what = "cheetah-ll counts FIN and RST, and QUIC has none that a switch could see"
            yield Finding(("vips", i, "policy"), what, "use cheetah-rr, or cclb4 over IPv6")
        if udp and not ipv6 and vip.policy.startswith("cclb4"):
            what = f"{vip.policy} needs the loads that servers report, and over IPv4 QUIC has no place for them"
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
            yield Finding(("servers", i, "address"), f"{server.address} lies in a cookie prefix", "give an address outside of it")
        covering = (own.supernet(new_prefix=length) for length in lengths)
        way = next((routes[prefix] for prefix in covering if prefix in routes), None)
        if served.cookie_prefix and (way is None or way in outside):
            what = f"no route leads to {own} on the servers' side, where this server has its cookie addresses"
            yield Finding(("servers", i, "address"), what, "add the prefix to `routes`")
    yield from duplicates(networks, "two servers send from {}", "a QUIC server on IPv6 needs a /64 of its own: move one")


def _servers(config: Config) -> Iterator[Finding]:
    servers = config.servers
    vips = {vip.name: vip for vip in config.vips}
    yield from duplicates(
        ((("servers", i, "name"), s.name) for i, s in enumerate(servers)), "server name {} is used twice", "rename one"
    )
    yield from duplicates(
        ((("servers", i, "sid"), s.sid) for i, s in enumerate(servers)),
        "sid {} is used twice",
        f"give a free one from 0 to {limits.MAX_SID}",
    )
    yield from duplicates(
        (
            (("servers", i, "address"), _endpoint(s.address, vips[s.vip].protocol if s.vip in vips else "tcp", s.port))
            for i, s in enumerate(servers)
        ),
        "two servers have address {}",
        "a server is one endpoint of one VIP: give each its own address or port",
    )
    hosts = {host.address for host in config.on_link_hosts}
    networks = {(r.prefix.version, r.prefix.prefixlen, int(r.prefix.network_address)) for r in config.routes}
    lengths = {(version, length) for version, length, _ in networks}
    for i, server in enumerate(servers):
        vip = vips.get(server.vip)
        if vip is None:
            names = ", ".join(list(vips)[:8]) or "none is defined yet"
            yield Finding(("servers", i, "vip"), f"there is no VIP {server.vip}", f"name one of `vips`: {names}")
        elif vip.address.version != server.address.version:
            what = (
                f"{server.address} is IPv{server.address.version}, but VIP {vip.name} ({vip.address}) is IPv{vip.address.version}"
            )
            yield Finding(("servers", i, "address"), what, f"give an IPv{vip.address.version} address")
        bits = server.address.max_prefixlen
        reachable = server.address in hosts or any(
            (version, length, int(server.address) >> (bits - length) << (bits - length)) in networks
            for version, length in lengths
            if version == server.address.version
        )
        if not reachable:
            what = f"neither a neighbor nor a route leads to {server.address}"
            yield Finding(("servers", i, "address"), what, "add it to `neighbors`, or a prefix that covers it to `routes`")


def _keys(config: Config) -> Iterator[Finding]:
    if len(config.keys) == 2 and abs(config.keys[0].id - config.keys[1].id) != 1:
        first, second = (key.id for key in config.keys)
        what = f"key ids {first} and {second} are not consecutive"
        yield Finding(("keys", 1, "id"), what, f"give {max(first - 1, 1)} or {first + 1}, or drop the older key")


def _sizes(config: Config) -> Iterator[Finding]:
    def limit(field: str, count: int, most: int, noun: str) -> Iterator[Finding]:
        if count > most:
            yield Finding((field,), f"{count} {noun}, the P4 program has room for {most}", "remove some", at_key=True)

    yield from limit("vips", len(config.vips), limits.MAX_VIPS, "VIPs")
    yield from limit("servers", len(config.servers), limits.MAX_SERVERS, "servers")
    hops = {(r.port, r.mac) for r in config.routes} | {(h.port, h.mac) for h in config.on_link_hosts}
    yield from limit("neighbors", len(hops), limits.MAX_NEXT_HOPS, "different next hops")
    for version in (4, 6):
        routes = sum(r.prefix.version == version for r in config.routes)
        routes += sum(h.address.version == version for h in config.on_link_hosts)
        yield from limit("routes", routes, limits.MAX_ROUTES, f"IPv{version} routes and neighbors")
        own = {g.ip for port in config.ports for g in port.gateways if g.version == version}
        own |= {vip.address for vip in config.vips if vip.address.version == version}
        yield from limit("vips", len(own), limits.MAX_NEIGHBORS, f"IPv{version} addresses of VIPs and gateways")
    alphas = {vip.name: vip.effective_alpha for vip in config.vips}
    lightest: dict[str, int] = {}
    for server in config.servers:
        lightest[server.vip] = min(server.weight, lightest.get(server.vip, server.weight))
    classes = {(alphas.get(s.vip), Fraction(lightest[s.vip], s.weight)) for s in config.servers}
    if len(classes) > limits.MAX_CLASSES:
        what = f"{len(classes)} different pairs of alpha and relative weight, the P4 program has room for {limits.MAX_CLASSES}"
        yield Finding(("servers",), what, "use fewer different weights or alphas", at_key=True)

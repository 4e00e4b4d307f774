# SPDX-License-Identifier: Apache-2.0
"""Checks of sites, dispatchers and service addresses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from frontage import limits
from frontage.config.checks.findings import Finding, duplicates
from frontage.config.document import Path
from frontage.config.routing import RoutingTable
from frontage.config.schema import Config
from frontage.config.vips import Protocol, Vip
from frontage.fields import IPAddress

_VXLAN_PORT = 4789


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of sites, dispatchers and service addresses."""
    yield from _services(config)
    if config.site is None:
        for field in ("sites", "dispatchers", "mapping"):
            if getattr(config, field):
                yield Finding((field,), "the own site is unknown", "add `site` with `id` and `vtep`", at_key=True)
        return
    yield from _sites(config)
    yield from _reach(config)
    yield from _sids(config)
    ends = len(config.sites) + sum(len(site.dispatchers) for site in config.sites) + len(config.dispatchers) + len(config.servers)
    if ends + limits.DISPATCHER_SLOTS > limits.MAX_TUNNEL_ENDPOINTS:
        what = f"{ends} tunnel endpoints, but the P4 program has room for {limits.MAX_TUNNEL_ENDPOINTS - limits.DISPATCHER_SLOTS}"
        yield Finding(("sites",), what, "remove some", at_key=True)


def _services(config: Config) -> Iterator[Finding]:
    first: dict[int, int] = {}
    for i, vip in enumerate(config.vips):
        service, path = vip.artemis, ("vips", i, "artemis")
        if service is None:
            continue
        if config.site is None:
            yield Finding(path, "the own site is unknown", "add `site` with `id` and `vtep`", at_key=True)
        if vip.protocol is Protocol.TCP and not service.dedicated_address:
            what = f"VIP {vip.name} uses TCP, but a dispatcher reads the SNI of QUIC only"
            yield Finding((*path, "dedicated_address"), what, "set it to true, or set the protocol to `udp`")
        elif vip.protocol is Protocol.UDP and vip.port == _VXLAN_PORT:
            yield Finding(("vips", i, "port"), f"UDP port {_VXLAN_PORT} is reserved for VXLAN", "use another port")
        other = config.vips[first.setdefault(service.id, i)]
        if not _is_same(vip, other):
            what = f"VIP {other.name} describes service {service.id} differently"
            yield Finding((*path, "id"), what, "make the two equal, or give one of them another id")
        if vip.has_replicas and not service.dedicated_address and not config.dispatchers:
            yield Finding(
                (*path, "dedicated_address"), "no dispatcher to read the SNI", "add one to `dispatchers`, or set this to true"
            )
    for i, server in enumerate(config.servers):
        if server.tunnel_address is not None and not any(vip.has_replicas for vip in config.vips if vip.name == server.vip):
            yield Finding(
                ("servers", i, "tunnel_address"),
                f"VIP {server.vip} is not a service address of QUIC",
                "remove it, or add `artemis` to the VIP",
            )


def _is_same(vip: Vip, other: Vip) -> bool:
    """Return whether two VIPs describe the same service. Of dispatchers, only those of QUIC may know it."""
    if vip.artemis is None or other.artemis is None or vip.artemis.service != other.artemis.service:
        return False
    return vip.protocol is not other.protocol or vip.artemis.dedicated_address == other.artemis.dedicated_address


def _sites(config: Config) -> Iterator[Finding]:
    own = config.site
    assert own is not None
    if len({address.version for address in own.vtep}) < len(own.vtep):
        yield Finding(("site", "vtep"), "two addresses of the same IP version", "use one per IP version")
    yield from duplicates(
        ((("sites", i, "id"), s.id) for i, s in enumerate(config.sites)), "duplicate site id {}", "renumber one of the sites"
    )
    yield from duplicates(
        ((("sites", i, "name"), s.name) for i, s in enumerate(config.sites)), 'duplicate site name "{}"', "rename one of the sites"
    )
    yield from duplicates(
        ((("dispatchers", i, "name"), d.name) for i, d in enumerate(config.dispatchers)),
        'duplicate dispatcher name "{}"',
        "rename one of the dispatchers",
    )
    ends: list[tuple[Path, object]] = [(("site", "vtep", i), address) for i, address in enumerate(own.vtep)]
    for i, site in enumerate(config.sites):
        if site.id == own.id:
            if site.vtep not in own.vtep:
                yield Finding(
                    ("sites", i, "vtep"),
                    f"site {own.id} is this site, but its vtep is not {site.vtep}",
                    "use the same address as in `site`",
                )
            continue
        ends.append((("sites", i, "vtep"), site.vtep))
        ends += [(("sites", i, "dispatchers", j), address) for j, address in enumerate(site.dispatchers)]
    ends += [(("dispatchers", i, "address"), dispatcher.address) for i, dispatcher in enumerate(config.dispatchers)]
    yield from duplicates(ends, "duplicate tunnel endpoint {}", "give each endpoint its own address")
    taken = {vip.address for vip in config.vips} | {gateway.ip for port in config.ports for gateway in port.gateways}
    for path, address in ends[: len(own.vtep)]:
        if address in taken:
            yield Finding(path, f"{address} is the address of a VIP or a gateway", "use another address for the tunnel endpoint")


def _reach(config: Config) -> Iterator[Finding]:
    """Check that the switch reaches every endpoint: over an IP version that it has, by a port of the right role."""
    own = config.site
    assert own is not None
    routing, roles = RoutingTable(config.routes, config.on_link_hosts), {port.name: port.role for port in config.ports}
    ends: list[tuple[Path, IPAddress, str]] = []
    for i, site in enumerate(config.sites):
        if site.id != own.id:
            ends.append((("sites", i, "vtep"), site.vtep, "site"))
    ends += [(("dispatchers", i, "address"), dispatcher.address, "server") for i, dispatcher in enumerate(config.dispatchers)]
    services = {vip.name for vip in config.vips if vip.has_replicas}
    for i, server in enumerate(config.servers):
        if server.vip in services:
            ends.append(
                (("servers", i, "address" if server.tunnel_address is None else "tunnel_address"), server.tunnel_endpoint, "server")
            )
    for path, address, role in ends:
        if own.vtep_of(address.version) is None:
            yield Finding(
                path,
                f"{address} is IPv{address.version}, but this switch has no IPv{address.version} vtep",
                "add one to `site.vtep`",
            )
        hop = routing.lookup(address)
        if hop is None or roles.get(hop.port) != role:
            what = f"no route to {address} by a port of role '{role}'"
            yield Finding(path, what, "add one to `routes` or `neighbors`, by a port of this role: tunnels use no other ports")


def _sids(config: Config) -> Iterator[Finding]:
    own = config.site
    assert own is not None
    ranges = sorted((site.sids, i) for i, site in enumerate(config.sites))
    for ((_, last), i), (sids, j) in pairwise(ranges):
        if sids[0] <= last:
            what = f"sites {config.sites[i].id} and {config.sites[j].id} share SIDs from {sids[0]}"
            yield Finding(("sites", j, "sids"), what, "give every site its own range")
    for i, server in enumerate(config.servers):
        for site in config.sites:
            inside = site.sids[0] <= server.sid <= site.sids[1]
            if inside != (site.id == own.id):
                verb = "is in" if inside else "is not in"
                what = f"SID {server.sid} {verb} the range of site {site.id}, {site.sids[0]} to {site.sids[1]}"
                yield Finding(("servers", i, "sid"), what, f"use a SID in the range of site {own.id}")

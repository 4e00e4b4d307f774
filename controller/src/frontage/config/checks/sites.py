"""What a schema cannot say of sites, dispatchers and service addresses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from frontage import limits
from frontage.config.checks.findings import Finding, duplicates
from frontage.config.document import Path
from frontage.config.routing import RoutingTable
from frontage.config.schema import Config
from frontage.fields import IPAddress

_VXLAN_PORT = 4789


def check(config: Config) -> Iterator[Finding]:
    yield from _services(config)
    if config.site is None:
        for field in ("sites", "dispatchers", "mapping"):
            if getattr(config, field):
                yield Finding((field,), "the file does not say which site this is", "add `site` with `id` and `vtep`", at_key=True)
        return
    yield from _sites(config)
    yield from _reach(config)
    yield from _sids(config)
    ends = len(config.sites) + sum(len(site.dispatchers) for site in config.sites) + len(config.dispatchers) + len(config.servers)
    if ends + limits.DISPATCHER_SLOTS > limits.MAX_TUNNEL_ENDPOINTS:
        what = f"{ends} ends of tunnels, the P4 program has room for {limits.MAX_TUNNEL_ENDPOINTS - limits.DISPATCHER_SLOTS}"
        yield Finding(("sites",), what, "remove some", at_key=True)


def _services(config: Config) -> Iterator[Finding]:
    first: dict[int, int] = {}
    for i, vip in enumerate(config.vips):
        service, path = vip.artemis, ("vips", i, "artemis")
        if service is None:
            continue
        if config.site is None:
            yield Finding(path, "the file does not say which site this is", "add `site` with `id` and `vtep`", at_key=True)
        if vip.protocol != "udp":
            yield Finding(path, f"VIP {vip.name} is TCP, and Artemis binds late by QUIC", "make its protocol `udp`", at_key=True)
        if vip.port == _VXLAN_PORT:
            yield Finding(("vips", i, "port"), f"UDP port {_VXLAN_PORT} is that of tunnels", "give another port")
        other = config.vips[first.setdefault(service.id, i)].artemis
        if other != service:
            what = f"VIP {config.vips[first[service.id]].name} is service {service.id} too, and says other things of it"
            yield Finding((*path, "id"), what, "make them alike, or give one of them another number")
        if not service.decided and not config.dispatchers:
            yield Finding(
                (*path, "decided"), "no dispatcher is there to look at SNI", "add one to `dispatchers`, or let the address decide"
            )
    for i, server in enumerate(config.servers):
        if server.tunnel is not None and all(vip.artemis is None for vip in config.vips if vip.name == server.vip):
            yield Finding(
                ("servers", i, "tunnel"), f"VIP {server.vip} is no service address", "remove it, or give the VIP `artemis`"
            )


def _sites(config: Config) -> Iterator[Finding]:
    own = config.site
    assert own is not None
    if len({address.version for address in own.vtep}) < len(own.vtep):
        yield Finding(("site", "vtep"), "there are two addresses of one IP version", "give one of each")
    yield from duplicates(
        ((("sites", i, "id"), s.id) for i, s in enumerate(config.sites)), "site id {} is used twice", "renumber one"
    )
    yield from duplicates(
        ((("sites", i, "name"), s.name) for i, s in enumerate(config.sites)), "site name {} is used twice", "rename one"
    )
    yield from duplicates(
        ((("dispatchers", i, "name"), d.name) for i, d in enumerate(config.dispatchers)),
        "dispatcher name {} is used twice",
        "rename one",
    )
    ends: list[tuple[Path, object]] = [(("site", "vtep", i), address) for i, address in enumerate(own.vtep)]
    for i, site in enumerate(config.sites):
        if site.id == own.id:
            if site.vtep not in own.vtep:
                yield Finding(("sites", i, "vtep"), f"site {own.id} is this one, whose vtep is not {site.vtep}", "give it the same")
            continue
        ends.append((("sites", i, "vtep"), site.vtep))
        ends += [(("sites", i, "dispatchers", j), address) for j, address in enumerate(site.dispatchers)]
    ends += [(("dispatchers", i, "address"), dispatcher.address) for i, dispatcher in enumerate(config.dispatchers)]
    yield from duplicates(ends, "two tunnels end at {}", "give each its own address")
    taken = {vip.address for vip in config.vips} | {gateway.ip for port in config.ports for gateway in port.gateways}
    for path, address in ends[: len(own.vtep)]:
        if address in taken:
            yield Finding(path, f"{address} is a VIP's or a gateway's", "give the tunnel an address of its own")


def _reach(config: Config) -> Iterator[Finding]:
    """Every end is over an IP version of ours, and behind a port of the right side."""
    own = config.site
    assert own is not None
    routing, roles = RoutingTable(config.routes, config.on_link_hosts), {port.name: port.role for port in config.ports}
    ends: list[tuple[Path, IPAddress, str]] = []
    for i, site in enumerate(config.sites):
        if site.id != own.id:
            ends.append((("sites", i, "vtep"), site.vtep, "site"))
    ends += [(("dispatchers", i, "address"), dispatcher.address, "server") for i, dispatcher in enumerate(config.dispatchers)]
    services = {vip.name for vip in config.vips if vip.artemis is not None}
    for i, server in enumerate(config.servers):
        if server.vip in services:
            ends.append((("servers", i, "address" if server.tunnel is None else "tunnel"), server.tunnel_end, "server"))
    for path, address, role in ends:
        if own.end(address.version) is None:
            yield Finding(path, f"{address} is IPv{address.version}, and this switch has no such vtep", "add one to `site.vtep`")
        hop = routing.lookup(address)
        if hop is None or roles.get(hop.port) != role:
            what = f"no route leads to {address} by a port of role '{role}'"
            yield Finding(
                path, what, "add one to `routes` or `neighbors`, and give its port that role: others are no way for tunnels"
            )


def _sids(config: Config) -> Iterator[Finding]:
    own = config.site
    assert own is not None
    ranges = sorted((site.sids, i) for i, site in enumerate(config.sites))
    for ((_, last), i), (sids, j) in pairwise(ranges):
        if sids[0] <= last:
            what = f"sites {config.sites[i].id} and {config.sites[j].id} share SIDs from {sids[0]} on"
            yield Finding(("sites", j, "sids"), what, "give every site a range of its own")
    for i, server in enumerate(config.servers):
        for site in config.sites:
            inside = site.sids[0] <= server.sid <= site.sids[1]
            if inside != (site.id == own.id):
                verb = "is in" if inside else "is not in"
                what = f"SID {server.sid} {verb} the range of site {site.id}, {site.sids[0]} to {site.sids[1]}"
                yield Finding(("servers", i, "sid"), what, f"give one of site {own.id}'s own")

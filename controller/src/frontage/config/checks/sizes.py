# SPDX-License-Identifier: Apache-2.0
"""Checks of the configuration against the table sizes of the P4 program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from frontage import limits
from frontage.config.checks.findings import Finding
from frontage.config.hash_tables import rooms, slots, total
from frontage.config.schema import Config
from frontage.config.score_classes import score_classes


def check(config: Config) -> Iterator[Finding]:
    """Yield a finding for everything that does not fit into the P4 program's tables."""

    def limit(field: str, count: int, most: int, noun: str) -> Iterator[Finding]:
        if count > most:
            yield Finding((field,), f"{count} {noun}, but the P4 program has room for {most}", "remove some", at_key=True)

    yield from limit("vips", len(config.vips), limits.MAX_VIPS, "VIPs")
    yield from limit("servers", len(config.servers), limits.MAX_SERVERS, "servers")
    hops = {(r.port, r.mac or r.next_hop) for r in config.routes} | {(h.port, h.mac or h.address) for h in config.on_link_hosts}
    yield from limit("neighbors", len(hops), limits.MAX_NEXT_HOPS, "next hops")
    for version in (4, 6):
        routes = sum(r.prefix.version == version for r in config.routes)
        routes += sum(h.address.version == version for h in config.on_link_hosts)
        yield from limit("routes", routes, limits.MAX_ROUTES, f"IPv{version} routes and neighbors")
        own = {g.ip for port in config.ports for g in port.gateways if g.version == version}
        own |= {vip.address for vip in config.vips if vip.address.version == version}
        yield from limit("vips", len(own), limits.MAX_NEIGHBORS, f"IPv{version} addresses of VIPs and gateways")
    yield from _hash_tables(config)
    known = {vip.name for vip in config.vips}
    classes = score_classes(config.vips, [server for server in config.servers if server.vip in known])
    if len(classes) > limits.MAX_CLASSES:
        what = f"{len(classes)} pairs of alpha and relative weight, but the P4 program has room for {limits.MAX_CLASSES}"
        fix = "use fewer different weights or alphas" + (", or no slow start" if any(vip.slow_start for vip in config.vips) else "")
        yield Finding(("servers",), what, fix, at_key=True)


def _hash_tables(config: Config) -> Iterator[Finding]:
    """Yield a finding if the tables of VIPs with `max_servers` leave no room for the others."""
    servers = Counter(server.vip for server in config.servers)
    room = rooms(config.vips, servers)
    if (needed := total(room, servers)) > limits.MAGLEV_SLOTS:
        number, vip = max(enumerate(config.vips), key=lambda item: item[1].max_servers or 0)
        what = f"the tables of all VIPs need {needed} slots, of which this VIP has {slots(servers[vip.name], room[vip.name])}"
        yield Finding(("vips", number, "max_servers"), f"{what}, but the P4 program has room for {limits.MAGLEV_SLOTS}", "lower it")

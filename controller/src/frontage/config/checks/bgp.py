# SPDX-License-Identifier: Apache-2.0
"""Checks of the routers to which VIPs are announced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from frontage.config.bgp import COMMUNITY, DEFAULT_ROUTES, Bgp, PrefixRule
from frontage.config.checks.findings import Finding, duplicates, unknown_name
from frontage.config.document import Path
from frontage.config.schema import Config
from frontage.fields import IPNetwork
from frontage.limits import MAX_ROUTES


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the section ``bgp``."""
    if config.bgp is None:
        return
    yield from _learn(config)
    yield from _prefixes(config, config.bgp)
    neighbors = config.bgp.neighbors
    names = [own.device.name for own in config.switches]
    yield from duplicates(
        ((("bgp", "neighbors", i, "address"), neighbor.address) for i, neighbor in enumerate(neighbors)),
        "duplicate neighbor {}",
        "remove one of the two",
    )
    for i, neighbor in enumerate(neighbors):
        path: Path = ("bgp", "neighbors", i)
        if neighbor.device is None and len(names) > 1:
            yield Finding((*path, "device"), "missing", f"add the switch that the router sends to: {', '.join(names)}")
            continue
        if neighbor.device is not None and neighbor.device not in names:
            yield unknown_name((*path, "device"), "device", neighbor.device, names, "`devices`")
            continue
        if config.bgp_next_hop(neighbor) is None:
            what = f"{neighbor.address} is not on a link of the switch, so the next hop of the routes is unknown"
            yield Finding((*path, "address"), what, "add `next_hop`, an address of the switch that the router reaches")
        for field in ("source", "next_hop"):
            address = getattr(neighbor, field)
            if address is not None and address.version != neighbor.address.version:
                what = f"{address} is not an IPv{neighbor.address.version} address like that of the neighbor"
                yield Finding((*path, field), what, "use an address of the same IP version")
        for j, community in enumerate(neighbor.communities):
            if not re.match(COMMUNITY, community) or any(int(part) > 65535 for part in community.split(":")):
                what = f'invalid community "{community}"'
                yield Finding((*path, "communities", j), what, "write two numbers up to 65535, for example 64512:100")


def _prefixes(config: Config, bgp: Bgp) -> Iterator[Finding]:
    seen: list[tuple[str, int, IPNetwork]] = []
    for field, prefixes in (("service_prefixes", bgp.service_prefixes), ("own_prefixes", bgp.own_prefixes)):
        for i, prefix in enumerate(prefixes):
            path: Path = ("bgp", field, i)
            if prefix in DEFAULT_ROUTES.values():
                yield Finding(path, f"{prefix} is a default route", "use `announce: default` for the neighbors that need it")
            if all(neighbor.address.version != prefix.version for neighbor in bgp.upstreams):
                what = f"no neighbor learns the IPv{prefix.version} prefix {prefix}"
                yield Finding(path, what, f"add a neighbor with an IPv{prefix.version} address")
            for other_field, j, other in seen:
                # A site may also announce parts of its own prefixes.
                if prefix.overlaps(other) and "service_prefixes" in (field, other_field):
                    what = f"{prefix} overlaps {other} of {other_field}[{j}]"
                    yield Finding(path, what, "use prefixes that have no address in common")
            seen.append((field, i, prefix))
            yield from _anycast(config, path, prefix) if field == "service_prefixes" else _unicast(config, prefix)


def _anycast(config: Config, path: Path, prefix: IPNetwork) -> Iterator[Finding]:
    """Check a service prefix: it has service addresses, and nothing else."""
    members = [(j, vip) for j, vip in enumerate(config.vips) if vip.address in prefix]
    if not members:
        yield Finding(path, f"{prefix} has no service address", "add `artemis` to a VIP in it, or remove the prefix")
    for j, vip in members:
        if vip.artemis is None:
            what = f"{vip.address} is in {prefix}, but not a service address"
            yield Finding(("vips", j, "address"), what, "add `artemis`, or use an address outside `bgp.service_prefixes`")
    for j, vip in enumerate(config.vips):
        if vip.cookie_prefix is not None and vip.cookie_prefix.overlaps(prefix):
            what = f"{vip.cookie_prefix} overlaps {prefix}, which other sites announce"
            yield Finding(("vips", j, "cookie_prefix"), what, "use a prefix that only this site announces")


def _unicast(config: Config, prefix: IPNetwork) -> Iterator[Finding]:
    """Check an own prefix: it has no service addresses."""
    for j, vip in enumerate(config.vips):
        if vip.artemis is not None and vip.address in prefix:
            what = f"{vip.address} is in {prefix}, which only this site announces"
            yield Finding(("vips", j, "address"), what, "use an address outside `bgp.own_prefixes`")


def _learn(config: Config) -> Iterator[Finding]:
    learn = config.bgp.learn if config.bgp is not None else None
    if learn is None:
        return
    if learn.ipv4 is None and learn.ipv6 is None:
        yield Finding(("bgp", "learn"), "neither `ipv4` nor `ipv6`", "add the section of an address family, or remove `learn`")
    for version in (4, 6):
        family = learn.family(version)
        if family is None:
            continue
        path: Path = ("bgp", "learn", f"ipv{version}")
        for i, rule in enumerate(family.prefixes):
            yield from _rule((*path, "prefixes", i), version, rule)
        for own in config.switches:
            held = sum(route.prefix.version == version for route in own.routes)
            held += sum(host.address.version == version for host in own.on_link_hosts)
            if held + family.max_routes > MAX_ROUTES:
                what = f"{family.max_routes} learned routes and {held} others of {own.device.name} exceed the table of {MAX_ROUTES}"
                yield Finding((*path, "max_routes"), what, f"use at most {MAX_ROUTES - held}")


def _rule(path: Path, version: int, rule: PrefixRule) -> Iterator[Finding]:
    if rule.prefix.version != version:
        yield Finding((*path, "prefix"), f"{rule.prefix} is not an IPv{version} prefix", f"move it to `ipv{rule.prefix.version}`")
    elif not rule.prefix.prefixlen <= min(rule.lengths, default=-1) <= max(rule.lengths, default=-1) <= rule.prefix.max_prefixlen:
        what = f"lengths from {rule.lengths.start} to {rule.lengths.stop - 1} do not fit {rule.prefix}"
        fix = f"use {rule.prefix.prefixlen} <= min_length <= max_length <= {rule.prefix.max_prefixlen}"
        yield Finding(path, what, fix)

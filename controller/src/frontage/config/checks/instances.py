# SPDX-License-Identifier: Apache-2.0
"""Checks that names and addresses match: the name of a service determines its service address."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from frontage.config.checks.findings import Finding
from frontage.config.document import Path
from frontage.config.instances import Instance, service_addresses
from frontage.config.schema import Config
from frontage.config.vips import Vip
from frontage.fields import IPAddress


def check(config: Config) -> Iterator[Finding]:
    """Yield the contradictions between instances, names and addresses."""
    if not config.instances:
        return
    yield from _overlaps(config.instances)
    for i, vip in enumerate(config.vips):
        yield from _named(config, i, vip) if vip.artemis is not None else _unnamed(config, i, vip)
    yield from _collisions(config)
    for path, address, what in _unicast(config):
        if (instance := _around(config, address)) is not None:
            fix = "use an address that only this site has"
            yield Finding(path, f"{what} {address} is in the anycast prefix {instance.prefix.network}", fix)


def is_collision(one: Vip, other: Vip) -> bool:
    """Return whether two names have the same service address and port, so that their VIPs cannot differ."""
    if one.artemis is None or other.artemis is None or one.artemis.service == other.artemis.service:
        return False
    return (one.address, one.protocol, one.port) == (other.address, other.protocol, other.port)


def _overlaps(instances: tuple[Instance, ...]) -> Iterator[Finding]:
    for (i, one), (j, other) in combinations(enumerate(instances), 2):
        if one.prefix.network.overlaps(other.prefix.network):
            what = f"{other.prefix.network} overlaps {one.prefix.network} of instances[{i}]"
            yield Finding(("instances", j, "prefix"), what, "use prefixes that have no address in common")


def _named(config: Config, i: int, vip: Vip) -> Iterator[Finding]:
    assert vip.artemis is not None
    addresses = service_addresses(config.instances, vip.artemis.name)
    if not addresses:
        what = f"{vip.artemis.name} does not belong to an instance"
        yield Finding(("vips", i, "artemis", "name"), what, "add it to the `names` of one of `instances`")
    elif vip.address not in addresses:
        others = (v.artemis.name for v in config.vips if v.artemis is not None and v is not vip)
        owner = next((name for name in others if vip.address in service_addresses(config.instances, name)), None)
        what = f"{vip.address} is not the service address of {vip.artemis.name}" + (f" but that of {owner}" if owner else "")
        yield Finding(("vips", i, "address"), what, f"use {' or '.join(map(str, addresses))}, or remove `address`")


def _unnamed(config: Config, i: int, vip: Vip) -> Iterator[Finding]:
    if (instance := _around(config, vip.address)) is not None:
        what = f"{vip.address} is in the anycast prefix {instance.prefix.network}, but VIP {vip.name} has no name"
        yield Finding(("vips", i, "address"), what, "add `artemis`, or use an address outside the prefix")


def _collisions(config: Config) -> Iterator[Finding]:
    for (i, one), (j, other) in combinations(enumerate(config.vips), 2):
        instance = _around(config, one.address)
        if instance is None or not is_collision(one, other):
            continue
        assert one.artemis is not None and other.artemis is not None
        what = f"{other.artemis.name} has the same service address as {one.artemis.name} of vips[{i}], {one.address}"
        fix = f"use more bits than {instance.prefix.sid_bits} in `instances`, another port, or one VIP with `dedicated_address: false`"
        yield Finding(("vips", j, "artemis", "name"), what, fix)


def _unicast(config: Config) -> Iterator[tuple[Path, IPAddress, str]]:
    """Yield the addresses that only this site may have."""
    for i, port in enumerate(config.ports):
        yield from ((("ports", i, "gateways", j), gateway.ip, "gateway") for j, gateway in enumerate(port.gateways))
    for i, server in enumerate(config.servers):
        yield ("servers", i, "address"), server.address, "server"
    for i, vip in enumerate(config.vips):
        if vip.cookie_prefix is not None:
            yield ("vips", i, "cookie_prefix"), vip.cookie_prefix.network_address, "cookie prefix"
    if config.site is not None:
        yield from ((("site", "vtep", i), vtep, "tunnel endpoint") for i, vtep in enumerate(config.site.vtep))
    for i, dispatcher in enumerate(config.dispatchers):
        yield ("dispatchers", i, "address"), dispatcher.address, "dispatcher"


def _around(config: Config, address: IPAddress) -> Instance | None:
    """Return the instance whose prefix contains an address."""
    return next((instance for instance in config.instances if address in instance.prefix.network), None)

# SPDX-License-Identifier: Apache-2.0
"""Checks of the section ``health`` and of the health checks of VIPs."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config.checks.findings import Finding, duplicates, unknown_name
from frontage.config.document import Path
from frontage.config.health import FIELDS_OF_KIND, CheckKind, HealthCheck
from frontage.config.routing import RoutingTable
from frontage.config.schema import Config
from frontage.config.vips import Vip
from frontage.fields import IPAddress

_ROLES = ("client", "server")


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the checker and of the VIPs' checks."""
    yield from _checker(config)
    for i, vip in enumerate(config.vips):
        if vip.health is not None:
            yield from _vip(config, ("vips", i, "health"), vip, vip.health)


def _checker(config: Config) -> Iterator[Finding]:
    checker = config.health
    if checker is None:
        return
    ports = {port.name: port for port in config.ports}
    port = ports.get(checker.port)
    if port is None:
        yield unknown_name(("health", "port"), "port", checker.port, sorted(ports), "`ports`")
    elif port.role not in _ROLES:
        what = f"port {port.name} has role '{port.role}', but the checker is a client of the services"
        yield Finding(("health", "port"), what, "use a port of role 'client' or 'server'")
    versions = [(("health", "addresses", i), f"IPv{address.version}") for i, address in enumerate(checker.addresses)]
    yield from duplicates(versions, "two {} addresses", "keep one")
    taken = _taken(config)
    routing = RoutingTable(config.routes, config.on_link_hosts)
    for i, address in enumerate(checker.addresses):
        path: Path = ("health", "addresses", i)
        hop = routing.lookup(address)
        if address in taken:
            yield Finding(path, f"{address} is {taken[address]}", "use an address that only the checker has")
        elif port is not None and (hop is None or hop.port != port.name):
            what = f"no route to {address} through port {port.name}"
            yield Finding(path, what, "add the address to `neighbors`, or a prefix that covers it to `routes`")
        elif port is not None and not any(gateway.version == address.version for gateway in port.gateways):
            what = f"port {port.name} has no IPv{address.version} gateway, which the checker pings"
            yield Finding(path, what, "add one to the port's `gateways`")


def _taken(config: Config) -> dict[IPAddress, str]:
    """Return the addresses that the checker must not have, with their owners."""
    taken: dict[IPAddress, str] = {server.address: f"the address of server {server.name}" for server in config.servers}
    taken |= {address: f"the address of real server {r.name}" for r in config.real_servers for address in r.addresses}
    taken |= {vip.address: f"the address of VIP {vip.name}" for vip in config.vips}
    taken |= {gateway.ip: f"a gateway of port {port.name}" for port in config.ports for gateway in port.gateways}
    return taken


def _vip(config: Config, path: Path, vip: Vip, check: HealthCheck) -> Iterator[Finding]:
    checker = config.health
    if checker is None:
        yield Finding(
            path,
            "health checks need a checker",
            "add the section `health` with `port` and `addresses`; in a fleet, to each of `devices`",
            at_key=True,
        )
    elif checker.address(vip.address.version) is None:
        what = f"VIP {vip.name} is IPv{vip.address.version}, but the checker has no IPv{vip.address.version} address"
        yield Finding(path, what, "add one to `addresses` of `health`", at_key=True)
    at = (*path, "kind") if "kind" in check.model_fields_set else path
    if vip.protocol == "udp" and check.kind not in (CheckKind.HTTP3, CheckKind.SCRIPT):
        yield Finding(at, f"VIP {vip.name} uses UDP, but {check.kind} checks need TCP", "use http3 or script")
    if vip.protocol == "tcp" and check.kind is CheckKind.HTTP3:
        yield Finding(at, f"VIP {vip.name} uses TCP, but http3 checks need UDP", "use http or https")
    if check.kind is CheckKind.SCRIPT and not check.command:
        yield Finding(at, "a script check needs a program", "add `command`")
    special = frozenset[str]().union(*FIELDS_OF_KIND.values())
    for name in sorted((check.model_fields_set & special) - FIELDS_OF_KIND[check.kind]):
        yield Finding((*path, name), f'unknown key "{name}" for {check.kind}', "remove it, or use another kind", at_key=True)
    if check.timeout > check.interval:
        field = "timeout" if "timeout" in check.model_fields_set else "interval"
        what = f"the timeout of {check.timeout:g} s is above the interval of {check.interval:g} s"
        yield Finding((*path, field), what, "use a timeout up to the interval")

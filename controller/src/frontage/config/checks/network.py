# SPDX-License-Identifier: Apache-2.0
"""Checks of ports, schedulers, routes and neighbors."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from ipaddress import ip_network

from frontage.config.checks.findings import Finding, duplicates, unknown_name
from frontage.config.document import Path
from frontage.config.links import Links
from frontage.config.schema import Config
from frontage.fields import IPAddress


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the network around the switch."""
    yield from _ports(config)
    yield from _schedulers(config)
    yield from _forwarding(config)


def _ports(config: Config) -> Iterator[Finding]:
    ports = config.ports
    yield from duplicates(
        ((("ports", i, "id"), p.id) for i, p in enumerate(ports)), "duplicate port id {}", "renumber one of the ports"
    )
    yield from duplicates(
        ((("ports", i, "name"), p.name) for i, p in enumerate(ports)), 'duplicate port name "{}"', "rename one of the ports"
    )
    for i, port in enumerate(ports):
        if port.id == config.device.cpu_port:
            yield Finding(("ports", i, "id"), f"port {port.id} is the CPU port", "use the number of another port")
    gateways = [(("ports", i, "gateways", j), g.ip) for i, p in enumerate(ports) for j, g in enumerate(p.gateways)]
    yield from duplicates(gateways, "duplicate gateway address {}", "give every gateway its own address")


def _schedulers(config: Config) -> Iterator[Finding]:
    for i, port in enumerate(config.ports):
        scheduler = port.scheduler
        if scheduler is None:
            continue
        path: Path = ("ports", i, "scheduler")
        if scheduler.kind != "aifo":
            ranked = {"default_rank"} if scheduler.uses_ranks else set()
            for name in sorted(scheduler.model_fields_set - {"kind"} - ranked):
                yield Finding((*path, name), f'unknown key "{name}" for {scheduler.kind}', "remove it", at_key=True)
            continue
        if scheduler.capacity is None:
            what = "aifo needs the capacity of the queue"
            yield Finding((*path, "kind"), what, "add `capacity`, in packets")
            continue
        every = scheduler.report_every
        if every & (every - 1):
            yield Finding((*path, "report_every"), f"{every} is not a power of two", f"use {1 << every.bit_length() - 1}")
        elif every - 1 > Fraction(str(scheduler.k)) * scheduler.capacity:
            # Up to report_every - 1 departures are unreported: an idle queue must still look short enough for any packet.
            most = 1 << (int(Fraction(str(scheduler.k)) * scheduler.capacity) + 1).bit_length() - 1
            what = f"with {every - 1} unreported departures, an idle queue would look fuller than k * capacity"
            yield Finding((*path, "report_every"), what, f"use at most {most}, or a larger k or capacity")


def _forwarding(config: Config) -> Iterator[Finding]:
    ports = sorted(port.name for port in config.ports)
    for i, route in enumerate(config.routes):
        if route.port not in ports:
            yield unknown_name(("routes", i, "port"), "port", route.port, ports, "`ports`")
    for i, neighbor in enumerate(config.neighbors):
        if neighbor.port not in ports:
            yield unknown_name(("neighbors", i, "port"), "port", neighbor.port, ports, "`ports`")
    yield from _links(config)
    prefixes: list[tuple[Path, Hashable]] = [(("routes", i, "prefix"), r.prefix) for i, r in enumerate(config.routes)]
    prefixes += [(("neighbors", i, "address"), ip_network(n.address)) for i, n in enumerate(config.neighbors)]
    prefixes += [
        (("real_servers", i, "addresses", j), ip_network(address))
        for i, r in enumerate(config.real_servers)
        for j, address in enumerate(r.addresses)
    ]
    yield from duplicates(prefixes, "two next hops for {}", "keep one of them")


def _links(config: Config) -> Iterator[Finding]:
    """Check that every host that the controller has to resolve is on a link of its port, and behind one port only."""
    links = Links(config.ports)
    ports = {port.name: port for port in config.ports}
    hosts: list[tuple[Path, IPAddress, str]] = []
    hosts += [(("routes", i, "next_hop"), r.next_hop, r.port) for i, r in enumerate(config.routes) if r.next_hop is not None]
    hosts += [(("neighbors", i, "address"), n.address, n.port) for i, n in enumerate(config.neighbors) if n.mac is None]
    hosts += [
        (("real_servers", i, "addresses", j), address, r.port)
        for i, r in enumerate(config.real_servers)
        if r.mac is None
        for j, address in enumerate(r.addresses)
    ]
    behind: dict[IPAddress, str] = {host.address: host.port for host in config.neighbors}
    for path, address, name in hosts:
        port = ports.get(name)
        if port is None:
            continue  # another finding
        if address in links.own:
            yield Finding(path, f"{address} is an address of the switch itself", "use the address of the other host")
        elif not links.of(address, name):
            prefixes = ", ".join(str(gateway.network) for gateway in port.gateways)
            what = f"{address} is not on a link of port {name}" + (f", which has {prefixes}" if prefixes else "")
            yield Finding(path, what, "use an address there, add a gateway to the port, or give `mac`")
        elif behind.setdefault(address, name) != name:
            yield Finding(path, f"{address} is also behind port {behind[address]}", "use one port for the address")

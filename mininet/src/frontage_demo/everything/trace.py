# SPDX-License-Identifier: Apache-2.0
"""Follows one visit through all switches.

The switches capture what they receive. Afterwards each first packet of a kind is injected again, and the switch's trace of
this copy (docs/tracing.md) shows the tables and actions. Tracing during the visit would slow the switches down.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import grpc
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from frontage.p4.packet_trace import Frame, capture
from frontage_testbed.wan.addresses import SERVICE_PREFIX, TUNNEL_PORT

from .addresses import BACKBONE_PORT, CLIENT_PORT, RACK_PORT, REAL_PORT, Edge, balancers, edges
from .clients import by_artemis
from .site import CapturedSite
from .testbed import EverythingTestbed

TRACE_SECONDS = 10.0
"""Seconds for the trace of one packet."""
SETTLE = 1.0
"""Seconds after a visit in which its last packets arrive."""
_INNER = 14 + 40 + 8 + 8 + 14
"""Offset of the inner IPv6 header in VXLAN over IPv6: Ethernet, IPv6, UDP, VXLAN, Ethernet."""
_QUIET = ("neighbor", "not_routed", "ports", "local_mac", "round", "policy")
"""Parts of the names of tables that decide nothing about a connection, among them the rounds of the cookie's cipher."""


@dataclass(frozen=True)
class Packet:
    """A captured frame of a client's visit."""

    time: float
    """Seconds since the epoch."""
    edge: Edge
    port: int
    frame: bytes
    source: str
    """Source address: that of the tunnel, if there is one."""
    inner: tuple[str, str]
    """Source and destination inside the tunnel, or without a tunnel of the packet itself."""
    is_tunnelled: bool


@dataclass(frozen=True)
class Hop:
    """The first packet of a kind at a switch, and what the switch did with it."""

    milliseconds: float
    """Time since the first packet of the visit."""
    site: str
    """Location of the switch's site."""
    switch: str
    kind: str
    sender: str
    receiver: str
    length: int
    """Bytes of the frame."""
    decisions: tuple[tuple[str, str], ...]
    """Tables with a hit, and their actions with arguments."""
    left_by: tuple[int, ...]
    """Ports by which the packet and its copies left."""


@dataclass(frozen=True)
class Followed:
    """One visit as the switches saw it."""

    client: str
    entry: str
    """Location of the site to which anycast leads the client."""
    best: str
    """Location of the client's best site."""
    hops: tuple[Hop, ...]
    """The hops in the order of time."""


def follow(testbed: EverythingTestbed, client: str) -> Followed:
    """Open a page with two objects, and return the hops of its packets.

    The sites of the testbed are of the type `CapturedSite`.
    """
    by_artemis(testbed, client, list(testbed.page)[:2]).finish()
    time.sleep(SETTLE)
    host = testbed.client(client).run(["hostname", "-I"]).stdout.split()
    address = next(text for text in host if ":" in text)
    firsts: dict[tuple[str, str], tuple[Packet, tuple[str, str, str]]] = {}
    for packet in sorted(_packets(testbed, address), key=lambda packet: packet.time):
        described = _describe(packet, address)
        firsts.setdefault((packet.edge.site.name, described[0]), (packet, described))
    began = min(packet.time for packet, _ in firsts.values())
    traces = asyncio.run(_traces([packet for packet, _ in firsts.values()]))
    traced = zip(firsts.values(), traces, strict=True)
    hops = tuple(_hop(packet, texts, passes, began) for (packet, texts), passes in traced)
    return Followed(client, testbed.routes[testbed.scenario.clients[client]], testbed.best_site(client).location, hops)


def _packets(testbed: EverythingTestbed, client: str) -> Iterator[Packet]:
    for addresses in testbed.sites:
        site = testbed.fleet_site(addresses.location)
        assert isinstance(site, CapturedSite)
        for edge in edges(addresses):
            for port in (CLIENT_PORT, RACK_PORT, REAL_PORT, BACKBONE_PORT):
                yield from _of_port(edge, port, site.captured(edge, port), client)


def _of_port(edge: Edge, port: int, file: Path, client: str) -> Iterator[Packet]:
    with RawPcapReader(str(file)) as reader:
        for frame, meta in reader:
            outer = Ether(frame)
            if IPv6 not in outer:
                continue
            ip, is_tunnelled = outer[IPv6], False
            inner = ip
            if ip.nh == 17 and len(frame) > _INNER + 40 and int.from_bytes(frame[56:58]) == TUNNEL_PORT:
                inner, is_tunnelled = IPv6(frame[_INNER:]), True
            if client in (inner.src, inner.dst):
                at = meta.sec + meta.usec / (1e9 if reader.nano else 1e6)
                yield Packet(at, edge, port, frame, ip.src, (inner.src, inner.dst), is_tunnelled)


def _describe(packet: Packet, client: str) -> tuple[str, str, str]:
    """Return the kind of a packet, its sender and its receiver."""
    site, (source, destination) = packet.edge.site, packet.inner
    own = {balancer.address: balancer.name for balancer in balancers(site)}
    is_service = IPv6Address(destination) in IPv6Network(SERVICE_PREFIX)
    if source != client:
        if packet.port == REAL_PORT:
            return "object", "real server", "client"
        if packet.is_tunnelled:
            return "handshake: response", own.get(packet.source, "balancer"), "client"
        return "response", "balancer", "client"
    match packet.port:
        case _ if packet.source == site.dispatcher:
            return "first flight: dispatched", "dispatcher", "best site or balancer"
        case port if port == BACKBONE_PORT:
            return "from the entry site", "entry site", "best site"
        case _ if is_service:
            return ("first flight" if packet.frame[62] & 0x80 else "to the service address"), "client", "service address"
    return "to the cookie address", "client", "balancer"


def _hop(packet: Packet, described: tuple[str, str, str], passes: Sequence[dict[str, Any]], began: float) -> Hop:
    decisions, ports = [], []
    for one in passes:
        if one["pass"] == "egress" and one["outcome"]["is"] == "transmitted":
            ports.append(int(one["outcome"]["port"]))
        decisions += list(_decisions(one["steps"]))
    since = (packet.time - began) * 1e3
    kind, sender, receiver = described
    site, switch = packet.edge.site.location, packet.edge.name
    return Hop(since, site, switch, kind, sender, receiver, len(packet.frame), tuple(dict.fromkeys(decisions)), tuple(ports))


async def _traces(packets: Sequence[Packet]) -> list[list[dict[str, Any]]]:
    """Return the passes of a copy of each packet."""
    traces = []
    for packet in packets:
        async with grpc.aio.insecure_channel(packet.edge.grpc) as channel:
            traces.append(await capture(channel, 1, {}, TRACE_SECONDS, Frame(packet.port, packet.frame)))
    return traces


def _decisions(steps: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for step in steps:
        action = step.get("action")
        if step["step"] != "table" or not step.get("hit") or not action:
            continue
        table = ".".join(step["table"].split(".")[-2:])
        if any(part in table for part in _QUIET) or action["name"] == "NoAction":
            continue
        arguments = ", ".join(f"{name} = {value}" for name, value in action.get("args", {}).items())
        yield table, f"{action['name'].split('.')[-1]}({arguments})"

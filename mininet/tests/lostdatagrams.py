# SPDX-License-Identifier: Apache-2.0
"""Captures of QUIC packets at both ends of a network, and what they show: lost datagrams, and silence of connections.

The switches change addresses and ports but not payloads, and no two QUIC packets have the same payload.
So a datagram is lost if its payload leaves one end and does not arrive at the other one, whatever the client.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from scapy.utils import RawPcapReader

from frontage_testbed.capture import Capture
from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_SERVER_PORT
from frontage_testbed.nodes import Namespace

UDP = 54
"""Offset of UDP in a frame with IPv6."""
PORTS = f"ip6 and (udp port {QUIC_PORT} or udp port {QUIC_SERVER_PORT})"


@dataclass(frozen=True)
class Sighting:
    """A datagram at one end."""

    time: float
    """Seconds since the epoch."""
    up: bool
    """True if the client sent it."""
    client: bytes
    """The client's address and port."""
    payload: bytes
    """Length and first bytes of its payload, which identify it."""


@dataclass(frozen=True)
class Traffic:
    """All datagrams between clients and servers."""

    lost: list[float]
    """When lost datagrams were sent, in seconds since the epoch."""
    connections: list[list[float]]
    """When each connection's client received datagrams."""

    def silences(self, duration: float) -> list[tuple[float, float]]:
        """Return end and length of each time without a datagram, of the connections that received for at least `duration`."""
        lasting = [times for times in self.connections if times[-1] - times[0] >= duration]
        return [(after, after - before) for times in lasting for before, after in pairwise(times)]


class Captures:
    """Captures on the hosts of clients and servers."""

    def __init__(self, clients: Iterable[Namespace], servers: Iterable[Namespace], folder: Path) -> None:
        self._clients = [self._start(host, folder) for host in clients]
        self._servers = [self._start(host, folder) for host in servers]

    @staticmethod
    def _start(host: Namespace, folder: Path) -> Capture:
        own = folder / f"capture-{host.name}"
        own.mkdir()
        return Capture(host, own, what=PORTS)

    def end(self) -> Traffic:
        """End the captures, and compare them."""
        for capture in (*self._clients, *self._servers):
            capture.end()
            missed = re.search(r"(\d+) packets? dropped by kernel", (capture.file.parent / "tcpdump.log").read_text())
            assert missed is not None and missed[1] == "0", "the capture has all datagrams"
        return compare(
            *([s for capture in captures for s in _sightings(capture.file)] for captures in (self._clients, self._servers))
        )


def compare(clients: list[Sighting], servers: list[Sighting]) -> Traffic:
    """Compare the datagrams that both ends sent with those that the other one received."""
    lost: list[float] = []
    for up, senders, receivers in ((True, clients, servers), (False, servers, clients)):
        arrived = {s.payload for s in receivers if s.up == up}
        lost += [s.time for s in senders if s.up == up and s.payload not in arrived]
    received: dict[bytes, list[float]] = defaultdict(list)
    for s in clients:
        if not s.up:
            received[s.client].append(s.time)
    return Traffic(sorted(lost), [sorted(times) for times in received.values()])


def _sightings(pcap: Path) -> Iterator[Sighting]:
    with RawPcapReader(str(pcap)) as reader:
        for frame, metadata in reader:
            source, destination, length = struct.unpack_from(">HHH", frame, UDP)
            up = destination in (QUIC_PORT, QUIC_SERVER_PORT)
            client = frame[22:38] + struct.pack(">H", source) if up else frame[38:54] + struct.pack(">H", destination)
            payload = struct.pack(">H", length) + frame[UDP + 8 :]
            yield Sighting(metadata.sec + metadata.usec / 1e6, up, client, payload)

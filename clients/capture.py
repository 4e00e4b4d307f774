"""What a client's network saw of QUIC: addresses, ports, and what is in the clear of the first packets (RFC 8999)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from frontage_demo.addresses import QUIC_PORT

SNAPLEN = 128
"""Bytes of a frame to capture: Ethernet, IPv6, UDP, and a long header up to its ids."""
LONG_HEADER = 0x80


@dataclass(frozen=True)
class Datagram:
    """Of the service, either way."""

    up: bool
    """Whether the client sent it."""
    local: tuple[str, int]
    """The client's address and port."""
    remote: str
    """The address that is not the client's."""
    size: int
    """Bytes of UDP payload."""
    head: bytes
    """The payload's first bytes."""


@dataclass(frozen=True)
class Opening:
    """How a client begins: up to the first datagram that it is sent."""

    datagrams: int
    size: int
    """Bytes of the first datagram's payload."""
    destination_id: int
    """Bytes of the connection id that the client made up for the server."""
    source_id: int
    """Bytes of the connection id that the client wants to be known by."""


def datagrams(pcap: Path) -> list[Datagram]:
    """All of the service's port in a capture of Ethernet frames, in its order, but for what an earlier connection is still sent."""
    seen = [_datagram(frame) for frame in _frames(pcap.read_bytes())]
    at_work = {datagram.local for datagram in seen if datagram.up}
    return [datagram for datagram in seen if datagram.local in at_work]


def _datagram(frame: bytes) -> Datagram:
    version = frame[14] >> 4
    width, sources, udp = (4, 26, 34) if version == 4 else (16, 22, 54)
    addresses = [str(ip_address(frame[at : at + width])) for at in (sources, sources + width)]
    ports = struct.unpack_from(">HH", frame, udp)
    (length,) = struct.unpack_from(">H", frame, udp + 4)
    up = ports[1] == QUIC_PORT
    client, remote = (0, 1) if up else (1, 0)
    return Datagram(up, (addresses[client], ports[client]), addresses[remote], length - 8, frame[udp + 8 :])


def opening(seen: list[Datagram]) -> Opening:
    """Of the first connection in a capture.

    Raises ValueError if the client sent nothing, or nothing that has a long header.
    """
    flight = []
    for datagram in seen:
        if not datagram.up:
            break
        flight.append(datagram)
    if not flight or not flight[0].head[0] & LONG_HEADER:
        raise ValueError("the capture does not begin with a long header from the client: did it start in time?")
    head = flight[0].head
    destination_id = head[5]
    return Opening(len(flight), flight[0].size, destination_id, head[6 + destination_id])


def _frames(pcap: bytes) -> Iterator[bytes]:
    at = 24
    # The last frame may not be written whole yet.
    while at + 16 <= len(pcap):
        (length,) = struct.unpack_from("<I", pcap, at + 8)
        frame = pcap[at + 16 : at + 16 + length]
        if len(frame) < length:
            return
        yield frame
        at += 16 + length

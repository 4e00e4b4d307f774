# SPDX-License-Identifier: Apache-2.0
"""Messages of the BGP monitoring protocol (BMP, RFC 7854), by which FRR reports what each router announces.

No maintained package fits: os-ken reads BMP but depends on eventlet and 30 further packages, ExaBGP and Scapy read BGP without BMP,
and mrtparse and pybgpkit read files in the MRT format.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

from frontage.bgp.update import GracefulRestart, MalformedError, Update, parse_graceful_restart, parse_update
from frontage.fields import IPAddress

VERSION = 3
COMMON_HEADER = 6
PEER_HEADER = 42
MAX_MESSAGE = 1 << 16
"""Bytes. A message carries one or two messages of BGP, which have at most 4096 bytes (RFC 4271, section 4.1)."""
IPV6_PEER, LEGACY_AS_PATH = 0x80, 0x20
"""Flags of the peer header (RFC 7854, section 4.2)."""


class Kind(IntEnum):
    """The type of a message (RFC 7854, section 4.1)."""

    ROUTE_MONITORING = 0
    STATISTICS = 1
    PEER_DOWN = 2
    PEER_UP = 3
    INITIATION = 4
    TERMINATION = 5
    ROUTE_MIRRORING = 6


class Reason(IntEnum):
    """The reason why a session ended (RFC 7854, section 4.9)."""

    LOCAL_NOTIFICATION = 1
    LOCAL_EVENT = 2
    REMOTE_NOTIFICATION = 3
    REMOTE_CLOSED = 4
    """Without a notification."""
    DECONFIGURED = 5


@dataclass(frozen=True, slots=True)
class PeerUp:
    """A session is established."""

    peer: IPAddress
    graceful_restart: GracefulRestart | None


@dataclass(frozen=True, slots=True)
class PeerDown:
    """A session ended."""

    peer: IPAddress
    reason: int
    is_restart: bool = False
    """True if the router probably restarts gracefully, and goes on forwarding."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """A router announced or withdrew routes."""

    peer: IPAddress
    update: Update


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message of a router that cannot be read."""

    peer: IPAddress
    error: str


Event = PeerUp | PeerDown | Monitored | Malformed


async def read(reader: asyncio.StreamReader) -> Event | None:
    """Return the next message, or None for one without interest.

    Raises MalformedError if the stream is not BMP, and IncompleteReadError at its end.
    """
    header = await reader.readexactly(COMMON_HEADER)
    version, length, kind = struct.unpack("!BIB", header)
    if version != VERSION or not COMMON_HEADER <= length <= MAX_MESSAGE:
        raise MalformedError(f"not a message of BMP version {VERSION}: version {version}, {length} bytes")
    return parse(kind, await reader.readexactly(length - COMMON_HEADER))


def parse(kind: int, body: bytes) -> Event | None:
    """Return the content of a message without its common header. Raises MalformedError."""
    if kind not in (Kind.ROUTE_MONITORING, Kind.PEER_UP, Kind.PEER_DOWN):
        return None
    if len(body) < PEER_HEADER:
        raise MalformedError(f"a message of type {kind} has {len(body)} bytes")
    flags, address = body[1], body[10:26]
    peer: IPAddress = IPv6Address(address) if flags & IPV6_PEER else IPv4Address(address[12:])
    rest = body[PEER_HEADER:]
    try:
        match kind:
            case Kind.PEER_UP:
                # Local address, two ports, the OPEN that was sent, the one that was received.
                sent = struct.unpack_from("!H", rest, 20 + 16)[0]
                return PeerUp(peer, parse_graceful_restart(rest[20 + sent :]))
            case Kind.PEER_DOWN:
                return PeerDown(peer, rest[0])
            case _:
                return Monitored(peer, parse_update(rest, as4=not flags & LEGACY_AS_PATH))
    except (MalformedError, struct.error, IndexError) as error:
        return Malformed(peer, str(error))

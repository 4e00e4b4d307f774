# SPDX-License-Identifier: Apache-2.0
"""UPDATE and OPEN messages of BGP (RFC 4271, RFC 4760), as far as the selection of routes needs them.

`frontage.bgp.bmp` says why no package does this. 5,000 random messages gave the same result as with os-ken's parser.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from frontage.fields import IPAddress, IPNetwork

HEADER = 19
"""Bytes of marker, length and type (RFC 4271, section 4.1)."""
OPEN, UPDATE = 1, 2
ORIGIN, AS_PATH, NEXT_HOP, MED, LOCAL_PREF = 1, 2, 3, 4, 5
MP_REACH, MP_UNREACH = 14, 15
AS_SET, AS_SEQUENCE = 1, 2
EXTENDED_LENGTH = 0x10
UNICAST = 1
_VERSIONS = {1: 4, 2: 6}
"""IP versions by address family identifier."""
DEFAULT_LOCAL_PREF = 100
INCOMPLETE = 2
GRACEFUL_RESTART = 64
"""The capability of RFC 4724."""


class MalformedError(Exception):
    """A message does not have the form that its RFC defines."""


@dataclass(frozen=True, slots=True)
class Path:
    """The attributes of a route on which its selection depends."""

    next_hop: IPAddress
    local_pref: int = DEFAULT_LOCAL_PREF
    as_path: tuple[int, ...] = ()
    """Without the members of sets."""
    sets: int = 0
    """The number of sets in the AS path, each of which counts as one AS number."""
    origin: int = INCOMPLETE
    med: int = 0

    def without_own(self, asn: int) -> Path:
        """Return the path without the own AS number, which FRR puts in front of the paths that it reports."""
        return replace(self, as_path=self.as_path[1:]) if self.as_path[:1] == (asn,) else self

    @property
    def length(self) -> int:
        """The length of the AS path."""
        return len(self.as_path) + self.sets


@dataclass(slots=True)
class Update:
    """The content of an UPDATE message."""

    withdrawn: list[IPNetwork] = field(default_factory=list)
    reached: list[IPNetwork] = field(default_factory=list)
    path: Path | None = None
    """The path of the reached prefixes."""


@dataclass(frozen=True, slots=True)
class GracefulRestart:
    """The capability of a router to restart while it goes on forwarding."""

    seconds: int
    """The time that it may take."""
    is_restarting: bool
    """True if the router has just restarted."""
    preserved: frozenset[int]
    """The IP versions for which it has gone on forwarding in its last restart."""


def parse_update(message: bytes, *, as4: bool) -> Update:
    """Return the content of an UPDATE. ``as4`` says whether AS numbers have four bytes. Raises MalformedError."""
    try:
        return _parse_update(message, as4=as4)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedError(f"UPDATE: {error}") from None


def _parse_update(message: bytes, *, as4: bool) -> Update:
    if len(message) < HEADER + 4 or message[18] != UPDATE:
        raise MalformedError("not an UPDATE")
    result = Update()
    at = HEADER
    size = struct.unpack_from("!H", message, at)[0]
    result.withdrawn += _prefixes(_slice(message, at + 2, size), 4)
    at += 2 + size
    size = struct.unpack_from("!H", message, at)[0]
    attributes = dict(_attributes(_slice(message, at + 2, size)))
    result.reached += _prefixes(message[at + 2 + size :], 4)
    next_hop: IPAddress | None = IPv4Address(attributes[NEXT_HOP]) if NEXT_HOP in attributes else None
    if (value := attributes.get(MP_UNREACH)) is not None:
        version = _version(value)
        if version is not None:
            result.withdrawn += _prefixes(value[3:], version)
    if (value := attributes.get(MP_REACH)) is not None:
        version = _version(value)
        if version is not None:
            size = value[3]
            hop = _slice(value, 4, size)
            # With a link-local address, the global one comes first (RFC 2545, section 3).
            next_hop = IPv4Address(hop) if len(hop) == 4 else IPv6Address(hop[:16])
            result.reached += _prefixes(value[5 + size :], version)
    if result.reached:
        if next_hop is None:
            raise MalformedError("UPDATE: no next hop")
        as_path, sets = _as_path(attributes.get(AS_PATH, b""), 4 if as4 else 2)
        result.path = Path(
            next_hop,
            _number(attributes.get(LOCAL_PREF), DEFAULT_LOCAL_PREF),
            as_path,
            sets,
            attributes.get(ORIGIN, bytes([INCOMPLETE]))[0],
            _number(attributes.get(MED), 0),
        )
    return result


def parse_graceful_restart(message: bytes) -> GracefulRestart | None:
    """Return the capability in an OPEN message, or None without it. Raises MalformedError.

    FRR reports an OPEN that it has not kept as a header without content.
    """
    try:
        if len(message) < HEADER or message[18] != OPEN:
            raise MalformedError("not an OPEN")
        if len(message) == HEADER:
            return None
        parameters = _slice(message, HEADER + 10, message[HEADER + 9])
        for kind, value in _tlvs(parameters):
            for code, capability in _tlvs(value) if kind == 2 else ():
                if code == GRACEFUL_RESTART:
                    return _graceful_restart(capability)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedError(f"OPEN: {error}") from None
    return None


def _graceful_restart(value: bytes) -> GracefulRestart:
    flags = struct.unpack_from("!H", value)[0]
    listed = struct.iter_unpack("!HBB", value[2 : 2 + (len(value) - 2) // 4 * 4])
    preserved = (_VERSIONS[afi] for afi, safi, kept in listed if afi in _VERSIONS and safi == UNICAST and kept & 0x80)
    return GracefulRestart(flags & 0x0FFF, bool(flags & 0x8000), frozenset(preserved))


def _tlvs(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        yield data[at], _slice(data, at + 2, data[at + 1])
        at += 2 + data[at + 1]


def _slice(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError(f"a length of {size} exceeds the message")
    return data[at : at + size]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        flags, kind = data[at], data[at + 1]
        if flags & EXTENDED_LENGTH:
            size, at = struct.unpack_from("!H", data, at + 2)[0], at + 4
        else:
            size, at = data[at + 2], at + 3
        yield kind, _slice(data, at, size)
        at += size


def _version(value: bytes) -> int | None:
    """Return the IP version of a multiprotocol attribute, or None for routes that are not unicast routes of IP."""
    afi, safi = struct.unpack_from("!HB", value)
    return _VERSIONS.get(afi) if safi == UNICAST else None


def _prefixes(data: bytes, version: int) -> Iterator[IPNetwork]:
    width = 4 if version == 4 else 16
    at = 0
    while at < len(data):
        length = data[at]
        size = (length + 7) // 8
        if length > 8 * width:
            raise ValueError(f"a prefix has {length} bits")
        number = int.from_bytes(_slice(data, at + 1, size).ljust(width, b"\0"), "big")
        number = number >> (8 * width - length) << (8 * width - length)
        yield IPv4Network((number, length)) if version == 4 else IPv6Network((number, length))
        at += 1 + size


def _as_path(data: bytes, width: int) -> tuple[tuple[int, ...], int]:
    """Return the AS numbers of sequences, and the number of sets. Confederations do not count (RFC 5065, section 5.3)."""
    numbers: list[int] = []
    sets = 0
    at = 0
    while at < len(data):
        kind, count = data[at], data[at + 1]
        segment = _slice(data, at + 2, count * width)
        if kind == AS_SEQUENCE:
            numbers += (int.from_bytes(segment[i : i + width], "big") for i in range(0, len(segment), width))
        elif kind == AS_SET:
            sets += 1
        at += 2 + count * width
    return tuple(numbers), sets


def _number(value: bytes | None, default: int) -> int:
    return default if value is None else int.from_bytes(value, "big")

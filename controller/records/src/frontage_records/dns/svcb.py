# SPDX-License-Identifier: Apache-2.0
"""SVCB and HTTPS records (RFC 9460), which contain the protocols, the port and the addresses of a service."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from dnslib import HTTPS
from dnslib.label import DNSLabel

_ALPN, _PORT, _IPV4_HINT, _IPV6_HINT = 1, 3, 4, 6
"""Keys of parameters (RFC 9460, section 14.3.2). A record has them in ascending order."""
_MEMBERS = frozenset({"priority", "target", "alpn", "port"})
Address = IPv4Address | IPv6Address


class SVCB(HTTPS):  # type: ignore[misc]
    """An SVCB record, whose data has the same form as that of an HTTPS record."""


def https_record(kind: type[HTTPS], given: Mapping[str, Any], addresses: Sequence[Address]) -> HTTPS:
    """Return the record for a member `https` or `svcb` of a document. The addresses become hints if the target is the name itself.

    Raises ValueError, TypeError or KeyError for an invalid member.
    """
    if unknown := given.keys() - _MEMBERS:
        raise ValueError(f"unknown member {sorted(unknown)[0]}: use {', '.join(sorted(_MEMBERS))}")
    priority, target = given.get("priority", 1), str(given.get("target", "."))
    _check_number("priority", priority)
    labels = [] if target == "." else [bytearray(label) for label in DNSLabel(target).label]
    parameters = list(_parameters(given, [] if labels else addresses))
    if priority == 0 and (parameters or not labels):
        raise ValueError("a record with priority 0 is an alias: it must have a target, and neither alpn nor port")
    return kind(priority, labels, parameters)


def _parameters(given: Mapping[str, Any], addresses: Sequence[Address]) -> Iterator[tuple[int, bytes]]:
    protocols = given.get("alpn", [])
    if not isinstance(protocols, list) or not all(isinstance(name, str) and 0 < len(name.encode()) < 256 for name in protocols):
        raise ValueError("alpn must be a list of names of 1 to 255 bytes")
    if protocols:
        yield _ALPN, b"".join(bytes([len(name.encode())]) + name.encode() for name in protocols)
    if (port := given.get("port")) is not None:
        _check_number("port", port)
        yield _PORT, struct.pack("!H", port)
    for key, version in ((_IPV4_HINT, 4), (_IPV6_HINT, 6)):
        if hints := [address.packed for address in addresses if address.version == version]:
            yield key, b"".join(hints)


def _check_number(name: str, value: Any) -> None:
    if type(value) is not int or not 0 <= value < 1 << 16:
        raise ValueError(f"{name} must be a number from 0 to 65535")

# SPDX-License-Identifier: Apache-2.0
"""Service addresses: names hashed into an anycast prefix (Artemis, section 3.2).

The specification is ``docs/naming.md``. ``host-agents/naming/vectors.json`` has the test vectors that this module shares with
the Rust crate and the C library.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_PREFIX = re.compile(r"(?P<network>[^/+]+/[0-9]+)\+(?P<sid_bits>[0-9]+)", re.ASCII)
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWERED = str.maketrans(_UPPER, _UPPER.lower())


def canonical_name(text: str) -> str:
    """Return the name in the form that TLS carries and that is hashed: lower-case ASCII, without a final dot.

    See RFC 6066, section 3. Raises ValueError for an empty name, and for control characters.
    """
    name = text.removesuffix(".").translate(_LOWERED)
    if not name or any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in name):
        raise ValueError(f'invalid name "{text}": a name has at least one character and no control characters')
    return name


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name: the name itself, ``*.`` and a parent domain, or ``*``.

    Raises ValueError for an invalid name or pattern.
    """
    name = canonical_name(name)
    if pattern == "*":
        return True
    parent = canonical_name(pattern.removeprefix("*."))
    if "*" in parent:
        raise ValueError(f'invalid pattern "{pattern}": write films.example, *.films.example or *')
    return name.removesuffix(f".{parent}") not in ("", name) if pattern.startswith("*.") else name == parent


@dataclass(frozen=True, slots=True)
class ServicePrefix:
    """The anycast prefix of an instance, and N_sid, the length of its ServiceIDs in bits; ``2001:db8:a::/48+16`` as text."""

    network: IPv4Network | IPv6Network
    sid_bits: int

    def __post_init__(self) -> None:
        most = self.network.max_prefixlen - self.network.prefixlen
        if not 0 <= self.sid_bits <= most:
            raise ValueError(
                f'invalid service prefix "{self}": more than {self.network.max_prefixlen} bits: use an N_sid of at most {most}'
            )

    @classmethod
    def parse(cls, text: str) -> ServicePrefix:
        """Parse ``prefix/length+bits``. Raises ValueError."""
        match = _PREFIX.fullmatch(text)
        try:
            if match is None:
                raise ValueError("not prefix/length+bits")
            network = ip_network(match["network"])
        except ValueError as error:
            raise ValueError(f'invalid service prefix "{text}": {error}: write it as 2001:db8:a::/48+16') from error
        return cls(network, int(match["sid_bits"]))

    def __str__(self) -> str:
        return f"{self.network}+{self.sid_bits}"

    def service_address(self, name: str) -> IPv4Address | IPv6Address:
        """Return the address of service ``name``: prefix, ServiceID (the first ``sid_bits`` bits of SHA-512), zeros."""
        behind = self.network.max_prefixlen - self.network.prefixlen - self.sid_bits
        first = self.network.network_address
        return ip_address((int(first) | self._hash(name) << behind).to_bytes(first.max_prefixlen // 8))

    def service_id(self, name: str) -> str:
        """Return the ServiceID in hexadecimal, with as many digits as its bits need; the empty text for none."""
        digits = (self.sid_bits + 3) // 4
        return f"{self._hash(name):0{digits}x}" if digits else ""

    def _hash(self, name: str) -> int:
        digest = int.from_bytes(hashlib.sha512(canonical_name(name).encode()).digest())
        return digest >> (512 - self.sid_bits)

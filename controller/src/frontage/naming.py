"""Service Addresses: names hashed into an anycast prefix (Artemis, section 3.2).

The one specification is ``docs/naming.md``; ``host-agents/naming/vectors.json`` holds the test vectors that this module shares
with the Rust crate and the C library.
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
    """``text`` as TLS carries it and as it is hashed: ASCII letters lowered, without one final dot (RFC 6066, section 3).

    Raises ``ValueError`` for nothing at all, and for control characters.
    """
    name = text.removesuffix(".").translate(_LOWERED)
    if not name or any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in name):
        raise ValueError(f"{text!r} is no name: a name has one character at least, and no control characters")
    return name


@dataclass(frozen=True, slots=True)
class ServicePrefix:
    """An instance's anycast prefix and ``sid_bits``, the N_sid bits of its ServiceIDs; ``2001:db8:a::/48+16`` as text."""

    network: IPv4Network | IPv6Network
    sid_bits: int

    def __post_init__(self) -> None:
        most = self.network.max_prefixlen - self.network.prefixlen
        if not 0 <= self.sid_bits <= most:
            raise ValueError(f"{str(self)!r} has more than {self.network.max_prefixlen} bits; N_sid is at most {most}")

    @classmethod
    def parse(cls, text: str) -> ServicePrefix:
        """Reads ``prefix/length+bits``. Raises ``ValueError`` that says what to write."""
        match = _PREFIX.fullmatch(text)
        try:
            if match is None:
                raise ValueError("it is not prefix/length+bits")
            network = ip_network(match["network"])
        except ValueError as error:
            raise ValueError(f"{text!r} is no prefix with N_sid ({error}); write it as 2001:db8:a::/48+16") from error
        return cls(network, int(match["sid_bits"]))

    def __str__(self) -> str:
        return f"{self.network}+{self.sid_bits}"

    def service_address(self, name: str) -> IPv4Address | IPv6Address:
        """The address of service ``name``: prefix, ServiceID (the first ``sid_bits`` bits of SHA-512), zeros."""
        digest = int.from_bytes(hashlib.sha512(canonical_name(name).encode()).digest())
        behind = self.network.max_prefixlen - self.network.prefixlen - self.sid_bits
        service_id = digest >> (512 - self.sid_bits)
        first = self.network.network_address
        return ip_address((int(first) | service_id << behind).to_bytes(first.max_prefixlen // 8))

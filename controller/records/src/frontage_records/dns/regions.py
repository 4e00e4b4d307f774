# SPDX-License-Identifier: Apache-2.0
"""The sites nearest to a client: by the client subnet that the resolver sends (RFC 7871), or by the resolver's own address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

OPTION = 8
"""EDNS option code of Client Subnet."""
_BYTES = {1: 4, 2: 16}
"""Bytes of an address by address family number."""

Network = IPv4Network | IPv6Network


class SubnetError(ValueError):
    """The option violates RFC 7871, section 6."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """A client subnet option."""

    family: int
    network: Network

    @classmethod
    def read(cls, data: bytes) -> Subnet:
        """Parse the data of an option. Raises SubnetError."""
        if len(data) < 4:
            raise SubnetError("fewer than four bytes")
        family, length, scope = int.from_bytes(data[:2], "big"), data[2], data[3]
        size = _BYTES.get(family)
        if size is None or length > 8 * size or scope or len(data) - 4 != -(-length // 8):
            raise SubnetError("family, lengths and address do not match")
        try:
            network = ip_network((data[4:].ljust(size, b"\0"), length))
        except ValueError:
            raise SubnetError("bits set beyond the prefix") from None
        return cls(family, network)

    def answer(self, scope: int) -> bytes:
        """Return the option for an answer that is valid for the first ``scope`` bits of the client's address."""
        kept = self.network.network_address.packed[: -(-self.network.prefixlen // 8)]
        return self.family.to_bytes(2, "big") + bytes([self.network.prefixlen, scope]) + kept


class Regions:
    """The nearest sites by client prefix; the longest matching prefix counts."""

    def __init__(self, sites: Mapping[Network, Sequence[int]]):
        """``sites``: fixed prefixes, which `put` does not change."""
        self._sites: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self._lengths: dict[int, list[int]] = {4: [], 6: []}
        self._fixed: frozenset[tuple[int, int, int]] = frozenset()
        self.put(sites)
        self._fixed = frozenset(self._sites)

    def put(self, sites: Mapping[Network, Sequence[int]]) -> None:
        """Replace the sites of these prefixes; an empty tuple removes a prefix."""
        for net, near in sites.items():
            key = net.version, int(net.network_address), net.prefixlen
            if key not in self._fixed:
                self._sites[key] = tuple(near)
        for version, lengths in self._lengths.items():
            new = {net.prefixlen for net in sites if net.version == version}
            self._lengths[version] = sorted({*lengths, *new}, reverse=True)

    def near(self, client: Network) -> tuple[tuple[int, ...], int]:
        """Return the sites, nearest first, and the length of the matching prefix; no sites and 0 if no prefix matches."""
        for length in self._lengths[client.version]:
            if length <= client.prefixlen:
                cut = int(client.supernet(new_prefix=length).network_address)
                found = self._sites.get((client.version, cut, length))
                if found:
                    return found, length
        return (), 0


def single(text: str) -> Network:
    """Return the host prefix of an address in the form that sockets give."""
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return ip_network(address)

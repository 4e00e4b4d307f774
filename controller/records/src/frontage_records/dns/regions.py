"""Which sites are near who asks: by the client's prefix that a resolver passes on (RFC 7871), else the resolver's own address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

OPTION = 8
"""EDNS Client Subnet's."""
_BYTES = {1: 4, 2: 16}
"""Of an address, by address family."""

Network = IPv4Network | IPv6Network


class SubnetError(ValueError):
    """An option that is not as RFC 7871, section 6, has it."""


@dataclass(frozen=True, slots=True)
class Subnet:
    family: int
    network: Network

    @classmethod
    def read(cls, data: bytes) -> Subnet:
        """An option's data. Raises SubnetError."""
        if len(data) < 4:
            raise SubnetError("less than four bytes")
        family, length, scope = int.from_bytes(data[:2], "big"), data[2], data[3]
        size = _BYTES.get(family)
        if size is None or length > 8 * size or scope or len(data) - 4 != -(-length // 8):
            raise SubnetError("family, lengths and address do not fit each other")
        try:
            network = ip_network((data[4:].ljust(size, b"\0"), length))
        except ValueError:
            raise SubnetError("bits behind the prefix") from None
        return cls(family, network)

    def answer(self, scope: int) -> bytes:
        """The option of an answer that is right for the first ``scope`` bits of the client's address."""
        kept = self.network.network_address.packed[: -(-self.network.prefixlen // 8)]
        return self.family.to_bytes(2, "big") + bytes([self.network.prefixlen, scope]) + kept


class Regions:
    """Prefixes of askers, the longest counts."""

    def __init__(self, sites: Mapping[Network, Sequence[int]]):
        """These stay, whatever is `put`."""
        self._sites: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self._lengths: dict[int, list[int]] = {4: [], 6: []}
        self._fixed: frozenset[tuple[int, int, int]] = frozenset()
        self.put(sites)
        self._fixed = frozenset(self._sites)

    def put(self, sites: Mapping[Network, Sequence[int]]) -> None:
        """What is known of these prefixes, instead of what was; none if nothing is."""
        for net, near in sites.items():
            key = net.version, int(net.network_address), net.prefixlen
            if key not in self._fixed:
                self._sites[key] = tuple(near)
        for version, lengths in self._lengths.items():
            new = {net.prefixlen for net in sites if net.version == version}
            self._lengths[version] = sorted({*lengths, *new}, reverse=True)

    def near(self, asker: Network) -> tuple[tuple[int, ...], int]:
        """The sites, the nearest first, and how many bits of the prefix decided; none if nobody knows."""
        for length in self._lengths[asker.version]:
            if length <= asker.prefixlen:
                cut = int(asker.supernet(new_prefix=length).network_address)
                found = self._sites.get((asker.version, cut, length))
                if found:
                    return found, length
        return (), 0


def single(text: str) -> Network:
    """The prefix of one address, as sockets give it."""
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return ip_network(address)

# SPDX-License-Identifier: Apache-2.0
"""The switch's own routes, for addresses that the forwarding tables do not look up, such as those of copies in egress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_network
from typing import Generic, NamedTuple, TypeVar

from frontage.config.network import Neighbor, Route
from frontage.fields import IPAddress, IPNetwork, Mac
from frontage.learned import NOTHING, Learned

T = TypeVar("T")


class NextHop(NamedTuple):
    """Where the switch sends a packet: the name of a port, and the next hop's Ethernet address, or None if it is unknown."""

    port: str
    mac: Mac | None


class PrefixTable(Generic[T]):
    """Longest-prefix match."""

    def __init__(self, items: Iterable[tuple[IPNetwork, T]]):
        """``items`` are values by prefix. The last value for a prefix overrides earlier ones."""
        self._by_prefix = {(prefix.version, prefix.prefixlen, int(prefix.network_address)): value for prefix, value in items}
        self._lengths = sorted({(version, length) for version, length, _ in self._by_prefix}, reverse=True)

    def lookup(self, address: IPAddress) -> T | None:
        """Return the value of the longest prefix that contains ``address``."""
        for version, length in self._lengths:
            if version == address.version:
                bits = address.max_prefixlen - length
                value = self._by_prefix.get((version, length, int(address) >> bits << bits))
                if value is not None:
                    return value
        return None


class RoutingTable(PrefixTable[NextHop]):
    """Longest-prefix match over routes and over hosts on the switch's own links."""

    def __init__(self, routes: Iterable[Route], on_link: Sequence[Neighbor], learned: Learned = NOTHING):
        hosts = {host.address: NextHop(host.port, host.mac) for host in on_link if host.mac is not None}
        items: list[tuple[IPNetwork, NextHop]] = []
        for prefix, next_hops in learned.routes.items():
            # These packets take one of several paths, because they are not looked up in the forwarding tables.
            usable = (hosts[address] for address in next_hops if address in hosts and address not in learned.down)
            if (hop := next(usable, None)) is not None:
                items.append((prefix, hop))
        items += [(route.prefix, NextHop(route.port, route.mac)) for route in routes]
        items += [(ip_network(host.address), NextHop(host.port, host.mac)) for host in on_link]
        super().__init__(items)

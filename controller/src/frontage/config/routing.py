# SPDX-License-Identifier: Apache-2.0
"""The switch's own routes, for addresses that the forwarding tables do not look up, such as those of copies in egress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_network
from typing import NamedTuple

from frontage.config.network import Neighbor, Route
from frontage.fields import IPAddress, Mac
from frontage.learned import NOTHING, Learned


class NextHop(NamedTuple):
    """Where the switch sends a packet: the name of a port, and the next hop's Ethernet address, or None if it is unknown."""

    port: str
    mac: Mac | None


class RoutingTable:
    """Longest-prefix match over routes and over hosts on the switch's own links."""

    def __init__(self, routes: Iterable[Route], on_link: Sequence[Neighbor], learned: Learned = NOTHING):
        self._by_prefix: dict[tuple[int, int, int], NextHop] = {}
        hosts = {host.address: NextHop(host.port, host.mac) for host in on_link if host.mac is not None}
        for prefix, next_hops in learned.routes.items():
            # These packets take one of several paths, because they are not looked up in the forwarding tables.
            usable = (hosts[address] for address in next_hops if address in hosts and address not in learned.down)
            if (hop := next(usable, None)) is not None:
                self._by_prefix[prefix.version, prefix.prefixlen, int(prefix.network_address)] = hop
        for route in routes:
            self._by_prefix[route.prefix.version, route.prefix.prefixlen, int(route.prefix.network_address)] = NextHop(
                route.port, route.mac
            )
        for host in on_link:
            network = ip_network(host.address)
            self._by_prefix[network.version, network.prefixlen, int(host.address)] = NextHop(host.port, host.mac)
        self._lengths = sorted({(version, length) for version, length, _ in self._by_prefix}, reverse=True)

    def lookup(self, address: IPAddress) -> NextHop | None:
        """Return the next hop of the longest prefix that contains ``address``."""
        for version, length in self._lengths:
            if version == address.version:
                bits = address.max_prefixlen - length
                hop = self._by_prefix.get((version, length, int(address) >> bits << bits))
                if hop is not None:
                    return hop
        return None

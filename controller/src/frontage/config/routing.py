# SPDX-License-Identifier: Apache-2.0
"""The switch's own routes, for addresses that the forwarding tables do not look up, such as those of copies in egress."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_network
from typing import NamedTuple

from frontage.config.network import Neighbor, Route
from frontage.fields import IPAddress, Mac


class NextHop(NamedTuple):
    """Where the switch sends a packet: the name of a port, and the next hop's Ethernet address, or None if it is unknown."""

    port: str
    mac: Mac | None


class RoutingTable:
    """Longest-prefix match over routes and over hosts on the switch's own links."""

    def __init__(self, routes: Iterable[Route], on_link: Iterable[Neighbor]):
        self._by_prefix: dict[tuple[int, int, int], NextHop] = {}
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

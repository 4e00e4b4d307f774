"""The switch's own routing, looked up as the switch will: for what forwarding does not look up itself, as copies in egress."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from frontage.config import Config
    from frontage.fields import IPAddress, Mac


class Way(NamedTuple):
    port: str
    """A port's name."""
    mac: Mac
    """Of the next hop."""


class Ways:
    """Longest prefixes of routes, and of the hosts on the switch's own links."""

    def __init__(self, config: Config):
        self._by_prefix: dict[tuple[int, int, int], Way] = {}
        for route in config.routes:
            self._by_prefix[route.prefix.version, route.prefix.prefixlen, int(route.prefix.network_address)] = Way(
                route.port, route.mac
            )
        for neighbor in config.hosts:
            network = ip_network(neighbor.address)
            self._by_prefix[network.version, network.prefixlen, int(neighbor.address)] = Way(neighbor.port, neighbor.mac)
        self._lengths = sorted({(version, length) for version, length, _ in self._by_prefix}, reverse=True)

    def to(self, address: IPAddress) -> Way | None:
        for version, length in self._lengths:
            if version == address.version:
                bits = address.max_prefixlen - length
                way = self._by_prefix.get((version, length, int(address) >> bits << bits))
                if way is not None:
                    return way
        return None

# SPDX-License-Identifier: Apache-2.0
"""The links of the switch: the prefixes of its gateways, and the hosts on them that need no entry in `neighbors`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from frontage.config.network import Neighbor, Port, Route
from frontage.fields import IPAddress, Mac

_Prefix = tuple[int, int, int]
"""IP version, length, network address."""


class Link(NamedTuple):
    """A port that has an address in the prefix of a host, and that address: the source of requests to the host."""

    port: Port
    gateway: IPAddress


class Resolved(NamedTuple):
    """A port name and an Ethernet address, by which the switch reaches a host on its own links."""

    port: str
    mac: Mac


class Links:
    """Looks up the ports whose gateways have an address in their prefix. The longest prefix of a port counts."""

    def __init__(self, ports: Iterable[Port]):
        self._links: dict[_Prefix, list[Link]] = {}
        self.own: set[IPAddress] = set()
        """The gateways' own addresses."""
        for port in ports:
            for gateway in port.gateways:
                network = gateway.network
                key = network.version, network.prefixlen, int(network.network_address)
                self._links.setdefault(key, []).append(Link(port, gateway.ip))
                self.own.add(gateway.ip)
        self._lengths = sorted({(version, length) for version, length, _ in self._links}, reverse=True)

    def of(self, address: IPAddress, port: str | None = None) -> list[Link]:
        """Return the links that ``address`` is on, one for each port, or only that of the port with this name.

        The switch's own addresses are on no link.
        """
        if address in self.own:
            return []
        found: dict[str, Link] = {}
        for key in self._prefixes(address):
            for link in self._links.get(key, ()):
                if port is None or link.port.name == port:
                    found.setdefault(link.port.name, link)
        return list(found.values())

    def prefix_length(self, address: IPAddress) -> int | None:
        """Return the length of the longest prefix of a link that contains ``address``, or None."""
        return next(
            (length for version, length, network in self._prefixes(address) if (version, length, network) in self._links), None
        )

    def _prefixes(self, address: IPAddress) -> Iterator[_Prefix]:
        for version, length in self._lengths:
            if version == address.version:
                bits = address.max_prefixlen - length
                yield version, length, int(address) >> bits << bits


def implied_hosts(
    ports: Iterable[Port], routes: Iterable[Route], known: Mapping[IPAddress, Neighbor], addresses: Iterable[IPAddress]
) -> Iterator[Neighbor]:
    """Yield those of ``addresses`` that are on a link and not ``known``, without Ethernet addresses.

    A route whose prefix is at least as long as that of the link comes first: then the host is behind the route's next hop.
    """
    links = Links(ports)
    routed = {(r.prefix.version, r.prefix.prefixlen, int(r.prefix.network_address)) for r in routes}
    lengths = {(version, length) for version, length, _ in routed}
    for address in dict.fromkeys(addresses):
        if address in known:
            continue
        found = links.of(address)
        length = links.prefix_length(address)
        if not found or length is None:
            continue
        longer = (candidate for version, candidate in lengths if version == address.version and candidate >= length)
        if not any(
            (address.version, n, int(address) >> (address.max_prefixlen - n) << (address.max_prefixlen - n)) in routed
            for n in longer
        ):
            yield Neighbor(address=address, port=found[0].port.name)


class Wanted(NamedTuple):
    """A host on the switch's own links whose Ethernet address the controller has to find out."""

    address: IPAddress
    links: tuple[Link, ...]
    """The links on which the host may be: one, unless several ports have the same prefix and none is named."""


def wanted_hosts(ports: Sequence[Port], on_link: Iterable[Neighbor], named: Iterable[IPAddress]) -> dict[IPAddress, Wanted]:
    """Return the hosts ``on_link`` without an Ethernet address.

    For the addresses that are ``named`` together with a port, only that port counts.
    """
    links = Links(ports)
    named = set(named)
    result: dict[IPAddress, Wanted] = {}
    for host in on_link:
        if host.mac is None and (found := links.of(host.address, host.port if host.address in named else None)):
            result[host.address] = Wanted(host.address, tuple(found))
    return result

# SPDX-License-Identifier: Apache-2.0
"""A topology: nodes with numbered ports, links, and shortest paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal


@dataclass(frozen=True)
class Switch:
    """A switch of the topology."""

    name: str
    balances: bool = False
    """True if it serves the VIP."""
    scheduled: bool = True
    """True if its ports have the scenario's scheduler."""


@dataclass(frozen=True)
class Host:
    """A host of the topology."""

    name: str
    role: Literal["client", "server", "peer"]
    rate: int | None = None
    """Sending rate in bit/s, if it differs from the link's."""

    @property
    def is_client(self) -> bool:
        """True if the host sends requests: it is a client or a peer."""
        return self.role != "server"

    @property
    def is_server(self) -> bool:
        """True if the host answers requests: it is a server or a peer."""
        return self.role != "client"


@dataclass(frozen=True)
class Link:
    """A symmetric link.

    ``rate`` is in bit/s, ``delay`` in ns, ``overhead`` in bytes per frame. The queue limit at each end is ``queue`` packets, or
    ``queue_bytes``.
    """

    a: str
    b: str
    rate: int
    delay: int
    queue: int
    loss_ppb: int = 0
    overhead: int = 0
    queue_bytes: int | None = None


@dataclass(frozen=True)
class Port:
    """One end of a link."""

    node: str
    number: int
    peer: str
    link: Link


@dataclass(frozen=True)
class Graph:
    """A network of switches, hosts and links."""

    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    bottleneck: int
    """Total rate in bit/s at a load of 1."""
    _distance: dict[str, dict[str, int]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def names(self) -> list[str]:
        """Names of all nodes: the switches, then the hosts."""
        return [switch.name for switch in self.switches] + [host.name for host in self.hosts]

    @property
    def balances(self) -> bool:
        """True if a switch serves the VIP; otherwise hosts send requests to each other."""
        return any(switch.balances for switch in self.switches)

    @cached_property
    def ports(self) -> dict[str, list[Port]]:
        """Ports of each node: a switch's numbered from 1 in the order of the links, a host's only port 0."""
        first = {switch.name: 1 for switch in self.switches}
        ports: dict[str, list[Port]] = {name: [] for name in self.names}
        for link in self.links:
            for node, peer in ((link.a, link.b), (link.b, link.a)):
                ports[node].append(Port(node, len(ports[node]) + first.get(node, 0), peer, link))
        return ports

    def distance(self, destination: str) -> dict[str, int]:
        """Return the number of links to ``destination`` for each node that can reach it through switches."""
        if destination not in self._distance:
            hosts = {host.name for host in self.hosts}
            hops = {destination: 0}
            queue = deque([destination])
            while queue:
                node = queue.popleft()
                if node in hosts and node != destination:
                    continue
                for port in self.ports[node]:
                    if port.peer not in hops:
                        hops[port.peer] = hops[node] + 1
                        queue.append(port.peer)
            self._distance[destination] = hops
        return self._distance[destination]

    def next_hop(self, node: str, destination: str, choice: int) -> Port | None:
        """Return the port of ``node`` on a shortest path to ``destination``; ``choice`` selects among several, modulo their number."""
        ports = self.next_hops(node, destination)
        return ports[choice % len(ports)] if ports else None

    def next_hops(self, node: str, destination: str) -> list[Port]:
        """Return the ports of ``node`` on all shortest paths to ``destination``."""
        hops = self.distance(destination)
        return [port for port in self.ports[node] if node in hops and hops.get(port.peer, len(hops)) == hops[node] - 1]

    def problems(self) -> Iterator[str]:
        """Yield the reasons why the graph is not a valid network."""
        yield from (f'duplicate node name "{name}"' for name in sorted({name for name in self.names if self.names.count(name) > 1}))
        for link in self.links:
            yield from (f'a link leads to the unknown node "{end}"' for end in (link.a, link.b) if end not in self.names)
        ends = [end for link in self.links for end in (link.a, link.b)]
        yield from (
            f"{host.name} has {ends.count(host.name)} links, a host must have one"
            for host in self.hosts
            if ends.count(host.name) != 1
        )

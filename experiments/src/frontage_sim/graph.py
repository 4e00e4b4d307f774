"""A topology: nodes with numbered ports, links, and the shortest ways between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal


@dataclass(frozen=True)
class Switch:
    name: str
    balances: bool = False
    """It serves the VIP."""
    scheduled: bool = True
    """Its ports have the scenario's scheduler."""


@dataclass(frozen=True)
class Host:
    name: str
    role: Literal["client", "server", "peer"]
    rate: int | None = None
    """Bits/s that it can send, if its link does not say."""

    @property
    def asks(self) -> bool:
        return self.role != "server"

    @property
    def answers(self) -> bool:
        return self.role != "client"


@dataclass(frozen=True)
class Link:
    """Both ways alike. ``rate`` bits/s, ``delay`` ns, ``queue`` packets or ``queue_bytes`` at either end, ``overhead`` bytes a frame."""

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
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    bottleneck: int
    """Bits/s that a load of 1 offers, in all."""
    _distance: dict[str, dict[str, int]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def names(self) -> list[str]:
        """Of all nodes: the switches, then the hosts."""
        return [switch.name for switch in self.switches] + [host.name for host in self.hosts]

    @property
    def balances(self) -> bool:
        """True if a switch serves the VIP; else hosts ask each other."""
        return any(switch.balances for switch in self.switches)

    @cached_property
    def ports(self) -> dict[str, list[Port]]:
        """Every node's ports, a switch's numbered from 1 in the order of the links, a host's only one 0."""
        first = {switch.name: 1 for switch in self.switches}
        found: dict[str, list[Port]] = {name: [] for name in self.names}
        for link in self.links:
            for node, peer in ((link.a, link.b), (link.b, link.a)):
                found[node].append(Port(node, len(found[node]) + first.get(node, 0), peer, link))
        return found

    def distance(self, destination: str) -> dict[str, int]:
        """Links from every node that reaches it to ``destination``; ways lead over switches only."""
        if destination not in self._distance:
            hosts = {host.name for host in self.hosts}
            hops = {destination: 0}
            waiting = deque([destination])
            while waiting:
                node = waiting.popleft()
                if node in hosts and node != destination:
                    continue
                for port in self.ports[node]:
                    if port.peer not in hops:
                        hops[port.peer] = hops[node] + 1
                        waiting.append(port.peer)
            self._distance[destination] = hops
        return self._distance[destination]

    def next_hop(self, node: str, destination: str, choice: int) -> Port | None:
        """The port of ``node`` on a shortest way to ``destination``; of several, the ``choice``-th, round and round."""
        nearer = self.next_hops(node, destination)
        return nearer[choice % len(nearer)] if nearer else None

    def next_hops(self, node: str, destination: str) -> list[Port]:
        """The ports of ``node`` on all shortest ways to ``destination``."""
        hops = self.distance(destination)
        return [port for port in self.ports[node] if node in hops and hops.get(port.peer, len(hops)) == hops[node] - 1]

    def problems(self) -> Iterator[str]:
        """What makes it no network."""
        yield from (f"two nodes are called {name}" for name in sorted({name for name in self.names if self.names.count(name) > 1}))
        for link in self.links:
            yield from (f"a link leads to {end}, which is no node" for end in (link.a, link.b) if end not in self.names)
        ends = [end for link in self.links for end in (link.a, link.b)]
        yield from (
            f"{host.name} has {ends.count(host.name)} links, a host has one" for host in self.hosts if ends.count(host.name) != 1
        )

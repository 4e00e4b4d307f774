# SPDX-License-Identifier: Apache-2.0
"""Addresses of the simulated network. They depend only on the order of the nodes in their graph, so they are the same in every run."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from frontage_sim.graph import Graph, Port

SERVER_PORT = 8080


@dataclass(frozen=True)
class Service:
    """The VIP of the service, and the address space of the hosts."""

    protocol: str
    """The controller's name of the protocol."""
    vip: IPv4Address | IPv6Address
    port: int
    cookie_prefix: IPv6Network | None
    hosts: IPv4Network | IPv6Network
    """The prefix that contains the networks of all hosts."""
    host_prefix: int
    """Length of a host's prefix: over IPv6 a /64, because a server's cookie is in the interface id (docs/quic.md)."""

    def network(self, graph: Graph, name: str) -> IPv4Network | IPv6Network:
        """Return a host's own network, in the order of the hosts."""
        bits = self.hosts.max_prefixlen - self.host_prefix
        return ip_network((int(self.hosts.network_address) + ((1 + sid(graph, name)) << bits), self.host_prefix))

    def address(self, graph: Graph, name: str) -> IPv4Address | IPv6Address:
        """Return a host's address: 10.0.0.1 and so on, or 2001:db8:0:1::1 and so on."""
        network = self.network(graph, name)
        return network.network_address + (network.num_addresses > 1)


TCP = Service("tcp", IPv4Address("203.0.113.10"), 80, None, IPv4Network("10.0.0.0/8"), 32)
QUIC = Service(
    "udp",
    IPv6Address("2001:db8:ffff::10"),
    443,
    IPv6Network("2001:db8:c00c:1e::/64"),
    IPv6Network("2001:db8::/48"),
    64,
)
SERVICES = {"tcp": TCP, "quic": QUIC}


def sid(graph: Graph, name: str) -> int:
    """Return a host's index, which is its SID."""
    return [host.name for host in graph.hosts].index(name)


def mac(graph: Graph, port: Port) -> str:
    """Return a MAC address: 02:00, two bytes for the node's index, two for the port number."""
    number = 0x02 << 40 | graph.names.index(port.node) << 16 | port.number
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))


def peer_mac(graph: Graph, port: Port) -> str:
    """Return the MAC address at the other end of the port's link."""
    return mac(graph, next(other for other in graph.ports[port.peer] if other.link is port.link))

"""Addresses of the simulated network: a function of a node's place in its graph, so that they are the same in every run."""

from __future__ import annotations

from ipaddress import IPv4Address

from frontage_sim.graph import Graph, Port

VIP = IPv4Address("203.0.113.10")
VIP_PORT = 80
SERVER_PORT = 8080


def host_address(graph: Graph, name: str) -> IPv4Address:
    """10.0.0.1 and so on, in the order of the hosts."""
    return IPv4Address("10.0.0.0") + 1 + sid(graph, name)


def sid(graph: Graph, name: str) -> int:
    """The place in the order of the hosts."""
    return [host.name for host in graph.hosts].index(name)


def mac(graph: Graph, port: Port) -> str:
    """02:00, the node's place in two bytes, the port's number in two."""
    number = 0x02 << 40 | graph.names.index(port.node) << 16 | port.number
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))


def peer_mac(graph: Graph, port: Port) -> str:
    """Of the other end of the port's link."""
    return mac(graph, next(other for other in graph.ports[port.peer] if other.link is port.link))

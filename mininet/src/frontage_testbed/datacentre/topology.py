# SPDX-License-Identifier: Apache-2.0
"""The topology of a data centre.

    c1 ..... cN           client hosts: unmodified kernels
        |                 (links that never fill)
     internet             a router
        |                 the bottleneck: the edge switch's port towards the clients, `bottleneck_rate`
      edge                the P4 switch: VIPs, CCLB4
      /   \\
    s1 ... sM             servers, each behind a link of its own of `server_rate`

The location of contention decides whether balancing can matter. In CloudCookie's testbed (section V) twelve servers,
each limited by one core and one virtual NIC, share one link towards the clients. This topology does the same: the
switch's client port is the shared bottleneck, and each server's own link has a quarter more than its fair share of it.
Where assignments cluster, that server's link fills while others idle, which a load-aware balancer avoids. With fast
server links all policies would look alike, because all flows would share one queue whichever server they came from.

The edge switch implements the bottleneck's rate, depth and delay exactly. A token bucket on the server's interface
limits its rate, as with a real NIC.
"""

from __future__ import annotations

from ..nodes import CONGESTION_CONTROL, Topo
from .addresses import (
    EDGE_CLIENT4,
    EDGE_CLIENT6,
    EDGE_CLIENT_MAC,
    EDGE_CLIENT_PORT,
    INTERNET4,
    INTERNET6,
    INTERNET_MAC,
    ClientAddresses,
    ServerAddresses,
)
from .settings import Settings

EDGE = "edge"
INTERNET = "internet"

SERVER_QUEUE = 200_000
"""Depth of a server's link in bytes. The kernel lets each flow queue only a few segments, so the number of flows fills it."""


def edge_interface(port: int) -> str:
    """Return the name of the interface of an edge switch port."""
    return f"{EDGE}-{port}"


class DataCentre(Topo):  # type: ignore[misc]
    """Clients, the edge switch and servers."""

    def build(self, settings: Settings) -> None:
        """Add hosts and links; mininet calls this with the constructor's arguments."""
        self.addSwitch(EDGE, dpid="1", inNamespace=False)
        clients = [ClientAddresses(i) for i in range(settings.clients)]
        self.addHost(INTERNET, setup=_router_setup(clients))
        self.addLink(
            EDGE,
            INTERNET,
            port1=EDGE_CLIENT_PORT,
            intfName1=edge_interface(EDGE_CLIENT_PORT),
            intfName2="edge",
            addr1=EDGE_CLIENT_MAC,
            addr2=INTERNET_MAC,
        )
        for client in clients:
            self.addHost(client.name, setup=client_setup(client))
            self.addLink(INTERNET, client.name, intfName1=client.name, intfName2="eth0")
        for index in range(settings.servers):
            self.add_server(ServerAddresses(index), settings)

    def add_server(self, server: ServerAddresses, settings: Settings) -> None:
        """Add a server on a link of the edge switch."""
        port = server.edge_port(settings.pipes)
        self.addHost(server.name, setup=server_setup(server, settings.server_rate))
        self.addLink(
            EDGE,
            server.name,
            port1=port,
            intfName1=edge_interface(port),
            intfName2="eth0",
            addr1=server.gateway_mac,
            addr2=server.mac,
        )


def _router_setup(clients: list[ClientAddresses]) -> list[str]:
    lines = [
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
        f"ip addr add {INTERNET4}/30 dev edge",
        f"ip addr add {INTERNET6}/64 dev edge nodad",
        f"ip route add default via {EDGE_CLIENT4}",
        f"ip -6 route add default via {EDGE_CLIENT6}",
    ]
    for client in clients:
        lines.append(f"ip addr add {client.gateway4}/24 dev {client.name}")
        lines.append(f"ip addr add {client.gateway6}/64 dev {client.name} nodad")
    return lines


def client_setup(client: ClientAddresses) -> list[str]:
    """Return the set-up script of a client host."""
    return [
        f"ip addr add {client.address4}/24 dev eth0",
        f"ip addr add {client.address6}/64 dev eth0 nodad",
        f"ip route add default via {client.gateway4} {CONGESTION_CONTROL}",
        f"ip -6 route add default via {client.gateway6} {CONGESTION_CONTROL}",
    ]


def server_setup(server: ServerAddresses, rate: int) -> list[str]:
    """Return the set-up script of a server, whose link has a limited rate."""
    return [
        f"ip addr add {server.address4}/24 dev eth0",
        f"ip addr add {server.address6}/64 dev eth0 nodad",
        f"ip route add default via {server.gateway4} {CONGESTION_CONTROL}",
        f"ip -6 route add default via {server.gateway6} {CONGESTION_CONTROL}",
        # The bucket holds four frames: enough for the timer's granularity, too little to hide the rate from a short flow.
        f"tc qdisc replace dev eth0 root tbf rate {rate}bit burst 6056 limit {SERVER_QUEUE}",
    ]

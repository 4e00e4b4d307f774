"""The demo's topology.

    c1 ..... cN           client hosts: unmodified kernels
        |                 (links that never fill)
     internet             a router
        |                 the bottleneck: the edge switch's port towards the clients, `bottleneck_rate`
      edge                the P4 switch: VIPs, CCLB4
      /   \\
    s1 ... sM             servers, each behind a link of its own of `server_rate`

Where contention arises decides whether balancing can matter. In CloudCookie's testbed (section V) twelve servers,
each limited by one core and one virtual NIC, share one link towards the clients. The same is built here: the switch's
client port is the shared bottleneck, and each server's own link carries a quarter more than its fair share of it. Where
assignments cluster, that server's link fills while others idle; a balancer that sees it avoids it. With fast server
links every policy would look alike, since all flows would share one queue whichever server they came from.

The bottleneck's rate, depth and delay are the edge switch's (exact); a server's link rate is its own interface's (a
token bucket), as with a real NIC.
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
"""Depth of a server's link in bytes. The kernel lets each flow queue only a few segments there, so it is the number
of flows that fills it.
"""


def edge_interface(port: int) -> str:
    """Name of the interface that is the edge switch's port."""
    return f"{EDGE}-{port}"


class DataCentre(Topo):  # type: ignore[misc]
    """Clients, the edge switch and servers."""

    def build(self, settings: Settings) -> None:
        """Called by mininet with the constructor's argument."""
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
            self.addHost(client.name, setup=_client_setup(client))
            self.addLink(INTERNET, client.name, intfName1=client.name, intfName2="eth0")
        for index in range(settings.servers):
            server = ServerAddresses(index)
            self.addHost(server.name, setup=_server_setup(server, settings.server_rate))
            self.addLink(
                EDGE,
                server.name,
                port1=server.edge_port,
                intfName1=edge_interface(server.edge_port),
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


def _client_setup(client: ClientAddresses) -> list[str]:
    return [
        f"ip addr add {client.address4}/24 dev eth0",
        f"ip addr add {client.address6}/64 dev eth0 nodad",
        f"ip route add default via {client.gateway4} {CONGESTION_CONTROL}",
        f"ip -6 route add default via {client.gateway6} {CONGESTION_CONTROL}",
    ]


def _server_setup(server: ServerAddresses, rate: int) -> list[str]:
    return [
        f"ip addr add {server.address4}/24 dev eth0",
        f"ip addr add {server.address6}/64 dev eth0 nodad",
        f"ip route add default via {server.gateway4} {CONGESTION_CONTROL}",
        f"ip -6 route add default via {server.gateway6} {CONGESTION_CONTROL}",
        # The bucket holds four frames: enough for the timer's granularity, too little to hide the rate from a short
        # flow.
        f"tc qdisc replace dev eth0 root tbf rate {rate}bit burst 6056 limit {SERVER_QUEUE}",
    ]

# SPDX-License-Identifier: Apache-2.0
"""The topology of a switch with several upstream routers.

    c1 ..... cN            client hosts
        |
     transit               a router of another network
      /    \\
    r1      r2             upstream routers
      \\    /
      edge1                the switch
        |
       rack ---- speaker   a bridge; a host with the controller's FRR
      /   \\
    s1 ... sM              servers
"""

from __future__ import annotations

from collections.abc import Sequence

from ..datacentre.addresses import CLIENTS4, CLIENTS6, ClientAddresses, ServerAddresses
from ..datacentre.settings import Settings
from ..datacentre.topology import client_setup
from ..fleet.addresses import RACK4, RACK6, RACK_PORT, EdgeAddresses
from ..fleet.routing import SPEAKER, speaker4, speaker6
from ..fleet.topology import MULTIPATH, RACK, rack_setup, server_setup
from ..nodes import Topo
from .addresses import SPEAKER_BMP4, TRANSIT, Upstream

BMP_INTERFACE = "bmp"


class UpstreamNetwork(Topo):  # type: ignore[misc]
    """Clients, transit, upstream routers, the switch, rack, FRR's host and servers."""

    def build(self, settings: Settings, edge: EdgeAddresses, routers: Sequence[Upstream]) -> None:
        """Add hosts and links; mininet calls this with the constructor's arguments."""
        clients = [ClientAddresses(i) for i in range(settings.clients)]
        servers = [ServerAddresses(i) for i in range(settings.servers)]
        self.addHost(TRANSIT, setup=_transit_setup(clients, routers))
        self.addHost(RACK, setup=rack_setup([*(s.name for s in servers), edge.name, SPEAKER]))
        for client in clients:
            self.addHost(client.name, setup=client_setup(client))
            self.addLink(TRANSIT, client.name, intfName1=client.name, intfName2="eth0")
        self.addSwitch(edge.name, dpid="1", inNamespace=False)
        for router in routers:
            self.addHost(router.name, setup=_router_setup(router))
            self.addLink(
                edge.name,
                router.name,
                port1=router.port,
                intfName1=edge.interface(router.port),
                intfName2="edge",
                addr1=router.uplink.uplink_mac,
                addr2=router.uplink.router_mac,
            )
            self.addLink(TRANSIT, router.name, intfName1=router.name, intfName2=TRANSIT)
        self.addLink(
            edge.name, RACK, port1=RACK_PORT, intfName1=edge.interface(RACK_PORT), intfName2=edge.name, addr1=edge.rack_mac
        )
        self.addHost(SPEAKER, setup=_speaker_setup(edge, routers))
        self.addLink(RACK, SPEAKER, intfName1=SPEAKER, intfName2="eth0")
        self.addLink(edge.name, SPEAKER, intfName1=BMP_INTERFACE, intfName2=BMP_INTERFACE)
        for server in servers:
            self.addHost(server.name, setup=server_setup(server, settings.server_rate, [edge]))
            self.addLink(RACK, server.name, intfName1=server.name, intfName2="eth0", addr2=server.mac)


FORWARDING = [
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
]


def _transit_setup(clients: Sequence[ClientAddresses], routers: Sequence[Upstream]) -> list[str]:
    lines = [*FORWARDING, *MULTIPATH]
    for client in clients:
        lines.append(f"ip addr add {client.gateway4}/24 dev {client.name}")
        lines.append(f"ip addr add {client.gateway6}/64 dev {client.name} nodad")
    for router in routers:
        lines.append(f"ip addr add {router.transit4}/30 dev {router.name}")
        lines.append(f"ip addr add {router.transit6}/64 dev {router.name} nodad")
    return lines


def _router_setup(router: Upstream) -> list[str]:
    edge = router.uplink
    return [
        *FORWARDING,
        f"ip addr add {edge.router4}/30 dev edge",
        f"ip addr add {edge.router6}/64 dev edge nodad",
        f"ip addr add {router.router4}/30 dev {TRANSIT}",
        f"ip addr add {router.router6}/64 dev {TRANSIT} nodad",
        # Forwarding goes on while the router's BGP daemon restarts.
        f"ip route add {CLIENTS4} via {router.transit4}",
        f"ip -6 route add {CLIENTS6} via {router.transit6}",
        f"ip route add {speaker4(edge)}/32 via {edge.uplink4}",
        f"ip -6 route add {speaker6(edge)}/128 via {edge.uplink6}",
    ]


def _speaker_setup(edge: EdgeAddresses, routers: Sequence[Upstream]) -> list[str]:
    lines = [f"ip addr add {SPEAKER_BMP4}/30 dev {BMP_INTERFACE}"]
    for router in routers:
        link = router.uplink
        lines.append(f"ip addr add {speaker4(link)}/{RACK4} dev eth0")
        lines.append(f"ip addr add {speaker6(link)}/{RACK6} dev eth0 nodad")
        lines.append(f"ip route add {link.router4}/32 via {edge.rack4}")
        lines.append(f"ip -6 route add {link.router6}/128 via {edge.rack6}")
    return lines

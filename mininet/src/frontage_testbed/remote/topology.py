# SPDX-License-Identifier: Apache-2.0
"""The topology of a data centre with remote servers.

    c1 ..... cN           client hosts
        |
     internet             a router
        |
      edge                the P4 switch
      / | \\
     /  |  fabric         a router, whose links have an MTU of 1,500 bytes
    /   |   / \\
   |   h2... h1           hosts that end the tunnels
   s3   |    |
        s2   s1           remote servers, with the same addresses and programs as local ones

Each server is a container on its host, behind a veth.
"""

from __future__ import annotations

from ..datacentre.addresses import ServerAddresses
from ..datacentre.settings import Settings
from ..datacentre.topology import EDGE, DataCentre, edge_interface, server_setup
from .addresses import VTEP4, VTEP6, UnderlayAddresses
from .kinds import Tunnel

FABRIC = "fabric"

_FORWARD = ["echo 1 > /proc/sys/net/ipv4/ip_forward", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]


class RemoteDataCentre(DataCentre):
    """Clients, the edge switch, local servers, and remote servers behind a router."""

    def build(self, settings: Settings, remote: int = 0, tunnel: Tunnel | None = None) -> None:
        """Add hosts and links. The first `remote` servers are remote."""
        assert tunnel is not None
        self._tunnel = tunnel
        self._hosts = [UnderlayAddresses(i) for i in range(remote)]
        self.addHost(FABRIC, setup=_fabric_setup(self._hosts))
        super().build(settings)

    def add_server(self, server: ServerAddresses, settings: Settings) -> None:
        """Add a server behind a tunnel, or a local one."""
        if server.index >= len(self._hosts):
            super().add_server(server, settings)
            return
        host = self._hosts[server.index]
        port = server.edge_port(settings.pipes)
        ends = {"intfName1": edge_interface(port), "intfName2": host.edge_link}
        self.addLink(EDGE, FABRIC, port1=port, addr1=server.gateway_mac, **ends)
        self.addHost(host.name, setup=_host_setup(host, server, self._tunnel))
        self.addLink(FABRIC, host.name, intfName1=host.name, intfName2=FABRIC)
        self.addHost(server.name, setup=server_setup(server, settings.server_rate))
        self.addLink(host.name, server.name, intfName1="eth0", intfName2="eth0", addr2=server.mac)


def _fabric_setup(hosts: list[UnderlayAddresses]) -> list[str]:
    lines = [*_FORWARD]
    for host in hosts:
        lines += [
            f"ip addr add {host.router4}/24 dev {host.edge_link}",
            f"ip addr add {host.router6}/64 dev {host.edge_link} nodad",
            f"ip addr add {host.gateway4}/24 dev {host.name}",
            f"ip addr add {host.gateway6}/64 dev {host.name} nodad",
            f"ip -6 route add {host.segments} via {host.host6}",
        ]
    return [
        *lines,
        f"ip route add {VTEP4} via {hosts[0].edge4}",
        f"ip -6 route add {VTEP6} via {hosts[0].edge6}",
        f"ip -6 route add default via {hosts[0].edge6}",
    ]


def _host_setup(host: UnderlayAddresses, server: ServerAddresses, tunnel: Tunnel) -> list[str]:
    return [
        *_FORWARD,
        f"ip addr add {host.host4}/24 dev {FABRIC}",
        f"ip addr add {host.host6}/64 dev {FABRIC} nodad",
        f"ip addr add {server.gateway4}/24 dev eth0",
        f"ip addr add {server.gateway6}/64 dev eth0 nodad",
        f"ip -6 route add {server.quic_prefix} via {server.address6}",
        f"ip route add {VTEP4} via {host.gateway4}",
        f"ip -6 route add {VTEP6} via {host.gateway6}",
        *tunnel.setup(host, server),
    ]

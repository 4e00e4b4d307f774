# SPDX-License-Identifier: Apache-2.0
"""The topology of hosts and sites.

    client, resolver of each region --+
    name server ----------------------+-- wan --+== edge switch of each site --+-- replica
                                                                              +-- dispatcher

`wan` is one softswitch that stands for the Internet (see `switch.py`) and has all delays; links have none. A site has two
links to it: for clients, and for the tunnels to other sites. Each dispatcher also has a link to the controllers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..nodes import CONGESTION_CONTROL, Topo
from .addresses import PLAIN_PREFIX, REGIONAL_PREFIX, WAN_MAC, Host, SiteAddresses

WAN = "wan"
MTU = 1600
"""MTU of a site's links: clients' packets plus the tunnel's headers."""
WAN_PORT, REPLICA_PORT, DISPATCHER_PORT, BACKBONE_PORT = 1, 2, 3, 4
"""Ports of an edge switch."""
MANAGEMENT_PORT = 5
"""The link on which the controllers reach the site's dispatcher; the switch does not use it."""


def wan_interface(port: int) -> str:
    """Return the interface of a port of the network's switch."""
    return f"{WAN}-{port}"


def edge_interface(site: SiteAddresses, port: int) -> str:
    """Return the interface of a port of a site's edge switch."""
    return f"e{site.id}-{port}"


def replica_host(site: SiteAddresses) -> str:
    """Return the name of the replica's host."""
    return f"p{site.id}"


def dispatcher_host(site: SiteAddresses) -> str:
    """Return the name of the dispatcher's host."""
    return f"d{site.id}"


class Internet(Topo):  # type: ignore[misc]
    """Hosts and sites attached to the network's switch."""

    def build(self, hosts: Sequence[Host], sites: Sequence[SiteAddresses]) -> None:
        """Add hosts and links; mininet calls this with the constructor's arguments."""
        ports = [f"ip link set {wan_interface(end.port)} mtu {MTU}" for site in sites for end in site.attachments]
        self.addSwitch(WAN, dpid="1", inNamespace=False, setup=ports)
        for host in hosts:
            self.addHost(host.name, setup=_host_setup(host))
            self.addLink(WAN, host.name, intfName1=wan_interface(host.port), intfName2="eth0", addr2=host.mac)
        for site in sites:
            self.add_site(site)

    def add_site(self, site: SiteAddresses) -> None:
        """Add a site's hosts and links."""
        edge = f"e{site.id}"
        numbers = (WAN_PORT, REPLICA_PORT, DISPATCHER_PORT, BACKBONE_PORT)
        setup = [f"ip link set {edge_interface(site, port)} mtu {MTU}" for port in numbers]
        self.addSwitch(edge, dpid=f"{1 + site.id:x}", inNamespace=False, setup=[*setup, *management_setup(site)])
        for number, port in ((site.port, WAN_PORT), (site.backbone_port, BACKBONE_PORT)):
            self.addLink(WAN, edge, intfName1=wan_interface(number), intfName2=edge_interface(site, port))
        for port, name, setup in (
            (REPLICA_PORT, replica_host(site), replica_setup(site)),
            (DISPATCHER_PORT, dispatcher_host(site), _dispatcher_setup(site)),
        ):
            self.addHost(name, setup=setup)
            interface, (_, mac) = edge_interface(site, port), site.link_macs(port)
            self.addLink(edge, name, intfName1=interface, intfName2="eth0", addr2=mac)
        management = edge_interface(site, MANAGEMENT_PORT)
        self.addLink(edge, dispatcher_host(site), intfName1=management, intfName2="eth1")


def _host_setup(host: Host) -> list[str]:
    return [
        f"ip addr add {host.address}/64 dev eth0 nodad",
        # The network's switch does not answer neighbor solicitations.
        f"ip -6 neigh replace {host.gateway} lladdr {WAN_MAC} dev eth0 nud permanent",
        f"ip -6 route add default via {host.gateway} {CONGESTION_CONTROL}",
    ]


def replica_setup(site: SiteAddresses) -> list[str]:
    """Return the set-up script of the replica's host."""
    return [
        f"ip link set eth0 mtu {MTU}",
        f"ip addr add {site.replica}/64 dev eth0 nodad",
        f"ip -6 route add local {site.server_prefix} dev lo",
        f"ip -6 route add local {PLAIN_PREFIX} dev lo",
        f"ip -6 route add local {REGIONAL_PREFIX} dev lo",
        f"ip -6 route add default via {site.replica_gateway} {CONGESTION_CONTROL}",
    ]


def management_setup(site: SiteAddresses) -> list[str]:
    """Return the set-up script of the controllers' end of the link to the dispatcher."""
    interface, (own, _) = edge_interface(site, MANAGEMENT_PORT), site.management
    return [
        f"echo 0 > /proc/sys/net/ipv6/conf/{interface}/disable_ipv6",
        f"ip addr add {own}/64 dev {interface} nodad",
    ]


def _dispatcher_setup(site: SiteAddresses) -> list[str]:
    return [
        f"ip link set eth0 mtu {MTU}",
        f"ip addr add {site.management[1]}/64 dev eth1 nodad",
        f"ip addr add {site.dispatcher}/64 dev eth0 nodad",
        f"ip -6 route add default via {site.dispatcher_gateway}",
    ]

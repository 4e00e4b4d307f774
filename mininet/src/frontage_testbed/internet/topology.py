# SPDX-License-Identifier: Apache-2.0
"""The network of the emulated Internet: routers, clients and sites, and the wires between them.

c11, c12 ... -- as64500 -- ... wires ... -- as64496 -- wires -- e1 --+-- p1   replica
clients         routers                                edge switch   +-- f1   FRR of the controller
                                                          |
                                                        wires (to the other sites)
"""

from __future__ import annotations

from collections.abc import Sequence

from ..nodes import CONGESTION_CONTROL, Topo
from ..wan.addresses import SiteAddresses
from ..wan.latency import Latencies
from ..wan.topology import MTU, edge_interface, replica_host, replica_setup
from ..wires import WIRES, interface
from .addresses import (
    REPLICA_PORT,
    ROUTER_MAC,
    SPEAKER_PORT,
    WAN_PORT,
    backbone_port,
    backbone_ports,
    client_address,
    client_gateway,
    client_host,
    link_address,
    link_ports,
    uplink_ports,
)
from .plan import ADJACENCIES, SYSTEMS, UPLINKS, System, neighbors_of

HOSTS = (1, 2, 3)
"""The hosts of each access network."""


def speaker_host(site: SiteAddresses) -> str:
    """Return the name of the host with the FRR of a site's controller."""
    return f"f{site.id}"


def site_interface(site: int) -> str:
    """Return the name of the upstream router's interface to a site."""
    return f"site{site}"


def edge_ports(site: SiteAddresses) -> list[int]:
    """Return the ports of a site's edge switch."""
    return [WAN_PORT, REPLICA_PORT, SPEAKER_PORT, *(backbone_port(other.site) for other in UPLINKS if other.site != site.id)]


def delays(latencies: Latencies) -> dict[int, str]:
    """Return the link options of each port of the wires: half of the round-trip time between the locations of its ends."""
    wires = [(link_ports(i), SYSTEMS[a.one].location, SYSTEMS[a.other].location) for i, a in enumerate(ADJACENCIES)]
    wires += [(uplink_ports(uplink), SYSTEMS[uplink.upstream].location, uplink.location) for uplink in UPLINKS]
    wires += [(backbone_ports(a.site, b.site), a.location, b.location) for a in UPLINKS for b in UPLINKS if a.site < b.site]
    return {port: f"delay={round(latencies.rtt(a, b) / 2 * 1e6)}ns" for ports, a, b in wires for port in ports}


class Internet(Topo):  # type: ignore[misc]
    """The systems with their clients, and the sites."""

    def build(self, sites: Sequence[SiteAddresses]) -> None:
        """Add hosts and links; mininet calls this with the constructor's arguments."""
        wide = [port for a in sites for b in sites if a.id < b.id for port in backbone_ports(a.id, b.id)]
        self.addSwitch(WIRES, dpid="1", inNamespace=False, setup=[f"ip link set {interface(port)} mtu {MTU}" for port in wide])
        for system in SYSTEMS.values():
            self.addHost(system.name, setup=_router_setup(system, sites))
            if system.client:
                self._add_clients(system)
        for index, link in enumerate(ADJACENCIES):
            one, other = SYSTEMS[link.one].name, SYSTEMS[link.other].name
            for port, router, towards in zip(link_ports(index), (one, other), (other, one), strict=True):
                self.addLink(WIRES, router, intfName1=interface(port), intfName2=towards)
        for site in sites:
            self._add_site(site)
        for a in sites:
            for b in sites:
                if a != b:
                    near, _ = backbone_ports(a.id, b.id)
                    edge = edge_interface(a, backbone_port(b.id))
                    self.addLink(WIRES, f"e{a.id}", intfName1=interface(near), intfName2=edge)

    def _add_clients(self, system: System) -> None:
        for host in HOSTS:
            name = client_host(system, host)
            self.addHost(name, setup=_client_setup(system, host))
            self.addLink(system.name, name, intfName1=name, intfName2="eth0")

    def _add_site(self, site: SiteAddresses) -> None:
        edge = f"e{site.id}"
        setup = [f"ip link set {edge_interface(site, port)} mtu {MTU}" for port in edge_ports(site)]
        self.addSwitch(edge, dpid=f"{1 + site.id:x}", inNamespace=False, setup=setup)
        uplink = next(one for one in UPLINKS if one.site == site.id)
        router, near = uplink_ports(uplink)
        mac = ROUTER_MAC.format(site=site.id)
        upstream = SYSTEMS[uplink.upstream].name
        self.addLink(WIRES, upstream, intfName1=interface(router), intfName2=site_interface(site.id), addr2=mac)
        self.addLink(WIRES, edge, intfName1=interface(near), intfName2=edge_interface(site, WAN_PORT))
        for port, name, lines in (
            (REPLICA_PORT, replica_host(site), replica_setup(site)),
            (SPEAKER_PORT, speaker_host(site), _speaker_setup(site)),
        ):
            self.addHost(name, setup=lines)
            _, mac = site.link_macs(port)
            self.addLink(edge, name, intfName1=edge_interface(site, port), intfName2="eth0", addr2=mac)


def _router_setup(system: System, sites: Sequence[SiteAddresses]) -> list[str]:
    lines = [
        "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
        # Each probe with a short hop limit gets its answer.
        "echo 0 > /proc/sys/net/ipv6/icmp/ratelimit",
    ]
    for index, neighbor, _ in neighbors_of(system.number):
        own = link_address(index, first=ADJACENCIES[index].one == system.number)
        lines.append(f"ip addr add {own}/64 dev {neighbor.name} nodad")
    for host in HOSTS if system.client else ():
        lines.append(f"ip addr add {client_gateway(system, host)}/64 dev {client_host(system, host)} nodad")
    for site in sites:
        if any(uplink.site == site.id and uplink.upstream == system.number for uplink in UPLINKS):
            lines.append(f"ip addr add {site.router}/64 dev {site_interface(site.id)} nodad")
            # The session passes through the switch.
            lines.append(f"ip -6 route add {site.speaker}/128 via {site.wan_gateway}")
    return lines


def _client_setup(system: System, host: int) -> list[str]:
    return [
        f"ip addr add {client_address(system, host)}/64 dev eth0 nodad",
        f"ip -6 route add default via {client_gateway(system, host)} {CONGESTION_CONTROL}",
    ]


def _speaker_setup(site: SiteAddresses) -> list[str]:
    return [
        f"ip addr add {site.speaker}/64 dev eth0 nodad",
        f"ip -6 route add default via {site.speaker_gateway}",
    ]

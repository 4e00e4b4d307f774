# SPDX-License-Identifier: Apache-2.0
"""The topology: two sites with two edge switches each, on the wide-area network of the Artemis testbed.

                            up1: router                                 rack: bridge
     clients, resolvers --- wan ===  ===== edge1 ==+=== balancers (replicas), dispatcher
     name server                   ===== edge2 ==+=== real servers
                            bb1: router                                 real: bridge
                                (tunnels)

Both routers spread packets over the site's switches (ECMP by addresses and ports), and so do the servers. The two
directions of a connection therefore usually pass through different switches.
"""

from __future__ import annotations

from collections.abc import Sequence

from frontage_testbed.fleet.topology import MULTIPATH, SERVER_MULTIPATH
from frontage_testbed.nodes import CONGESTION_CONTROL, Network
from frontage_testbed.wan.addresses import SERVICE_PREFIX, WAN_MAC, SiteAddresses
from frontage_testbed.wan.topology import MANAGEMENT_PORT, MTU, WAN, Internet, dispatcher_host, management_setup, wan_interface

from .addresses import (
    BACKBONE_PORT,
    BACKBONE_SIDE,
    CLIENT_PORT,
    CLIENT_SIDE,
    RACK_PORT,
    REAL_PORT,
    Balancer,
    Edge,
    balancers,
    edges,
    real_servers,
    router_host,
)

SIDES = {CLIENT_SIDE: CLIENT_PORT, BACKBONE_SIDE: BACKBONE_PORT}
"""The port of an edge switch to each router."""
BRIDGES = {"rack": RACK_PORT, "real": REAL_PORT}
"""The port of an edge switch to each bridge, by the beginning of its name."""


class Sites(Internet):
    """Clients, name servers and sites."""

    def add_site(self, site: SiteAddresses) -> None:
        """Add a site's hosts and links."""
        for edge in edges(site):
            ports = [f"ip link set {edge.interface(port)} mtu {MTU}" for port in (*SIDES.values(), *BRIDGES.values())]
            management = management_setup(site) if edge.index == 0 else []
            self.addSwitch(_node(edge), dpid=f"{16 * site.id + edge.index:x}", inNamespace=False, setup=[*ports, *management])
        for side, end in zip(SIDES, site.attachments, strict=True):
            name = router_host(site, side)
            self.addHost(name, setup=_router_setup(site, side))
            self.addLink(WAN, name, intfName1=wan_interface(end.port), intfName2="wan", addr2=end.mac)
            self._link_edges(site, name, SIDES[side])
        rack = [(b.name, _balancer_setup(b)) for b in balancers(site)]
        rack.append((dispatcher_host(site), _dispatcher_setup(site)))
        real = [(r.name, _real_server_setup(site, r.address)) for r in real_servers(site)]
        for (kind, port), hosts in zip(BRIDGES.items(), (rack, real), strict=True):
            self._add_bridge(site, f"{kind}{site.id}", port, hosts)
        control, dispatcher = edges(site)[0], dispatcher_host(site)
        self.addLink(_node(control), dispatcher, intfName1=f"e{site.id}-{MANAGEMENT_PORT}", intfName2="eth1")

    def _add_bridge(self, site: SiteAddresses, name: str, port: int, hosts: Sequence[tuple[str, Sequence[str]]]) -> None:
        members = [edge.name for edge in edges(site)] + [host for host, _ in hosts]
        setup = [f"ip link add {name} type bridge", f"ip link set {name} up"]
        setup += [f"ip link set {member} mtu {MTU} master {name}" for member in members]
        self.addHost(name, setup=setup)
        self._link_edges(site, name, port)
        for host, lines in hosts:
            self.addHost(host, setup=lines)
            self.addLink(name, host, intfName1=host, intfName2="eth0")

    def _link_edges(self, site: SiteAddresses, name: str, port: int) -> None:
        for edge in edges(site):
            interface, mac = edge.interface(port), edge.mac(port)
            self.addLink(_node(edge), name, intfName1=interface, intfName2=edge.name, addr1=mac)


def _node(edge: Edge) -> str:
    return f"e{edge.site.id}x{edge.index + 1}"


def route_through(network: Network, site: SiteAddresses, living: Sequence[Edge]) -> None:
    """Let routers and servers of a site use these switches only, as routing protocols would."""
    for side in SIDES:
        network[router_host(site, side)].run(["sh", "-euc", "\n".join(_routes_to_edges(site, side, living))])
    for balancer in balancers(site):
        network[balancer.name].run(["sh", "-euc", _default([edge.rack for edge in living])])
    for server in real_servers(site):
        network[server.name].run(["sh", "-euc", _default([edge.real for edge in living])])
    network[dispatcher_host(site)].run(["sh", "-euc", _default([edge.dispatchers for edge in living])])


def route_by_source(network: Network, site: SiteAddresses) -> None:
    """Let the servers of a site choose the switch of each packet by its source address, too."""
    for name in [balancer.name for balancer in balancers(site)] + [server.name for server in real_servers(site)]:
        network[name].run(["sh", "-euc", "\n".join(MULTIPATH)])


def _routes_to_edges(site: SiteAddresses, side: str, living: Sequence[Edge]) -> list[str]:
    prefixes = (f"{site.vtep}/128",) if side == BACKBONE_SIDE else (SERVICE_PREFIX, site.cookie_prefix, site.prefix)
    hops = _next_hops([edge.uplink(side)[0] for edge in living])
    return [f"ip -6 route replace {prefix} {hops}" for prefix in prefixes]


def _next_hops(addresses: Sequence[str]) -> str:
    return " ".join(f"nexthop via {address}" for address in addresses)


def _default(gateways: Sequence[str]) -> str:
    return f"ip -6 route replace default {CONGESTION_CONTROL} {_next_hops(gateways)}"


def _router_setup(site: SiteAddresses, side: str) -> list[str]:
    gateway = f"fe80::{site.id:x}"
    lines = ["echo 1 > /proc/sys/net/ipv6/conf/all/forwarding", *MULTIPATH]
    lines += [f"ip link set {interface} mtu {MTU}" for interface in ("wan", *(edge.name for edge in edges(site)))]
    # The network's switch does not answer neighbor solicitations.
    lines += [
        f"ip -6 neigh replace {gateway} lladdr {WAN_MAC} dev wan nud permanent",
        f"ip -6 route add default via {gateway} dev wan",
    ]
    lines += [f"ip addr add {edge.uplink(side)[1]}/64 dev {edge.name} nodad" for edge in edges(site)]
    return [*lines, *_routes_to_edges(site, side, edges(site))]


def _balancer_setup(balancer: Balancer) -> list[str]:
    return [
        *SERVER_MULTIPATH,
        f"ip link set eth0 mtu {MTU}",
        f"ip addr add {balancer.address}/64 dev eth0 nodad",
        f"ip -6 route add local {balancer.server_prefix} dev lo",
        _default([edge.rack for edge in edges(balancer.site)]),
    ]


def _real_server_setup(site: SiteAddresses, address: str) -> list[str]:
    return [
        *SERVER_MULTIPATH,
        f"ip link set eth0 mtu {MTU}",
        f"ip addr add {address}/64 dev eth0 nodad",
        _default([edge.real for edge in edges(site)]),
    ]


def _dispatcher_setup(site: SiteAddresses) -> list[str]:
    return [
        *MULTIPATH,
        f"ip link set eth0 mtu {MTU}",
        f"ip addr add {site.management[1]}/64 dev eth1 nodad",
        f"ip addr add {site.dispatcher}/64 dev eth0 nodad",
        _default([edge.dispatchers for edge in edges(site)]),
    ]

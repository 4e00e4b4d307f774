# SPDX-License-Identifier: Apache-2.0
"""The topology of a fleet.

    c1 ..... cN           client hosts
        |
     internet             a router; spreads packets to VIPs over the edge switches (ECMP) by addresses and ports
     /  |   \\
    e1  e2  e3            edge switches
     \\  |   /
       rack ---- speaker  a bridge; a host for BGP (routing.py)
      /   \\
    s1 ... sM             servers; spread packets to clients over the edge switches by addresses and ports

The two directions of a connection usually pass through different switches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..datacentre.addresses import COOKIE_PREFIX, EDGE_CLIENT_PORT, QUIC_VIP4, VIP4, VIP6, ClientAddresses, ServerAddresses
from ..datacentre.settings import Settings
from ..datacentre.topology import SERVER_QUEUE, client_setup
from ..nodes import CONGESTION_CONTROL, Namespace, Topo
from .addresses import RACK4, RACK6, RACK_PORT, EdgeAddresses
from .routing import SPEAKER, routes_to_speaker, speaker_setup

INTERNET = "internet"
RACK = "rack"
SERVICES4 = f"{VIP4.rsplit('.', 1)[0]}.0/24"
SERVICES6 = f"{VIP6.rsplit('::', 1)[0]}::/64"
"""Prefixes with all VIPs."""
assert QUIC_VIP4.rsplit(".", 1)[0] == VIP4.rsplit(".", 1)[0]

MULTIPATH = [f"echo 1 > /proc/sys/net/{ip}/fib_multipath_hash_policy" for ip in ("ipv4", "ipv6")]
"""Lets the kernel choose the next hop by addresses and ports."""
SERVER_MULTIPATH = [
    MULTIPATH[0],
    "echo 3 > /proc/sys/net/ipv6/fib_multipath_hash_policy",
    # The kernel's FIB_MULTIPATH_HASH_FIELD_ DST_IP, IP_PROTO, SRC_PORT and DST_PORT.
    f"echo {0x02 | 0x04 | 0x10 | 0x20} > /proc/sys/net/ipv6/fib_multipath_hash_fields",
]
"""The same for servers, but over IPv6 without the source address.

Dynamic cookies differ from packet to packet. A hash of the source address would therefore spread the packets of a connection
over all next hops, and reorder them (docs/quic.md, "Networks between servers and switches").
"""


class FleetNetwork(Topo):  # type: ignore[misc]
    """Clients, router, edge switches, rack and servers."""

    def build(self, settings: Settings, edges: Sequence[EdgeAddresses]) -> None:
        """Add hosts and links; mininet calls this with the constructor's arguments."""
        clients = [ClientAddresses(i) for i in range(settings.clients)]
        servers = [ServerAddresses(i) for i in range(settings.servers)]
        self.addHost(INTERNET, setup=_router_setup(clients, edges))
        self.addHost(RACK, setup=rack_setup([*(s.name for s in servers), *(e.name for e in edges), SPEAKER]))
        for client in clients:
            self.addHost(client.name, setup=client_setup(client))
            self.addLink(INTERNET, client.name, intfName1=client.name, intfName2="eth0")
        for edge in edges:
            self.addSwitch(edge.name, dpid=f"{edge.index + 1:x}", inNamespace=False)
            self.addLink(
                edge.name,
                INTERNET,
                port1=EDGE_CLIENT_PORT,
                intfName1=edge.interface(EDGE_CLIENT_PORT),
                intfName2=edge.name,
                addr1=edge.uplink_mac,
                addr2=edge.router_mac,
            )
            self.addLink(
                edge.name,
                RACK,
                port1=RACK_PORT,
                intfName1=edge.interface(RACK_PORT),
                intfName2=edge.name,
                addr1=edge.rack_mac,
            )
        self.addHost(SPEAKER, setup=speaker_setup(edges, servers))
        self.addLink(RACK, SPEAKER, intfName1=SPEAKER, intfName2="eth0")
        for server in servers:
            self.addHost(server.name, setup=server_setup(server, settings.server_rate, edges))
            self.addLink(RACK, server.name, intfName1=server.name, intfName2="eth0", addr2=server.mac)


def spread_to_services(router: Namespace, edges: Sequence[EdgeAddresses]) -> None:
    """Let the router send packets to VIPs through these edge switches only."""
    _run(router, _routes_to_services(edges))


def forget_services(router: Namespace) -> None:
    """Remove the router's static routes to VIPs, so that only routing protocols add some."""
    _run(
        router,
        [f"ip route del {SERVICES4}", *(f"ip -6 route del {prefix}" for prefix in (SERVICES6, COOKIE_PREFIX))],
    )


def forget_clients(servers: Sequence[Namespace]) -> None:
    """Remove the servers' static routes to clients, so that only routing protocols add some."""
    for server in servers:
        _run(server, ["ip route del default", "ip -6 route del default"])


def spread_to_clients(servers: Sequence[Namespace], edges: Sequence[EdgeAddresses]) -> None:
    """Let the servers send packets to clients through these edge switches only."""
    for server in servers:
        _run(server, _routes_to_clients(edges))


def _run(host: Namespace, lines: Sequence[str]) -> None:
    host.run(["sh", "-euc", "\n".join(lines)])


def _next_hops(addresses: Sequence[str]) -> str:
    return " ".join(f"nexthop via {address}" for address in addresses)


def _routes_to_services(edges: Sequence[EdgeAddresses]) -> list[str]:
    hops4, hops6 = _next_hops([e.uplink4 for e in edges]), _next_hops([e.uplink6 for e in edges])
    return [
        f"ip route replace {SERVICES4} {hops4}",
        *(f"ip -6 route replace {prefix} {hops6}" for prefix in (SERVICES6, COOKIE_PREFIX)),
    ]


def _routes_to_clients(edges: Sequence[EdgeAddresses]) -> list[str]:
    return [
        f"ip route replace default {CONGESTION_CONTROL} {_next_hops([e.rack4 for e in edges])}",
        f"ip -6 route replace default {CONGESTION_CONTROL} {_next_hops([e.rack6 for e in edges])}",
    ]


def _routes_to_checkers(edges: Sequence[EdgeAddresses]) -> list[str]:
    """Return the lines of a server's set-up script: each checker is behind its switch (checkers.py)."""
    return [
        line for e in edges for line in (f"ip route add {e.checker4} via {e.rack4}", f"ip -6 route add {e.checker6} via {e.rack6}")
    ]


def _router_setup(clients: Sequence[ClientAddresses], edges: Sequence[EdgeAddresses]) -> list[str]:
    lines = ["echo 1 > /proc/sys/net/ipv4/ip_forward", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding", *MULTIPATH]
    for edge in edges:
        lines.append(f"ip addr add {edge.router4}/30 dev {edge.name}")
        lines.append(f"ip addr add {edge.router6}/64 dev {edge.name} nodad")
    for client in clients:
        lines.append(f"ip addr add {client.gateway4}/24 dev {client.name}")
        lines.append(f"ip addr add {client.gateway6}/64 dev {client.name} nodad")
    return [*lines, *routes_to_speaker(edges), *_routes_to_services(edges)]


def rack_setup(interfaces: Sequence[str]) -> list[str]:
    """Return the set-up script of the rack, a bridge of these interfaces."""
    return [
        f"ip link add name {RACK} type bridge",
        *(f"ip link set {i} master {RACK}" for i in interfaces),
        f"ip link set {RACK} up",
    ]


def server_setup(server: ServerAddresses, rate: int, edges: Sequence[EdgeAddresses]) -> list[str]:
    """Return the set-up script of a server, which spreads packets to clients over these switches."""
    return [
        *SERVER_MULTIPATH,
        f"ip addr add {server.address4}/{RACK4} dev eth0",
        f"ip addr add {server.address6}/{RACK6} dev eth0 nodad",
        *_routes_to_clients(edges),
        *_routes_to_checkers(edges),
        f"tc qdisc replace dev eth0 root tbf rate {rate}bit burst 6056 limit {SERVER_QUEUE}",
    ]

# SPDX-License-Identifier: Apache-2.0
"""Topologies of the hand-off's experiments. Each wire is two ports of one softswitch, whose links have delays, rates and
losses.

    client ------- balancer            client ------ site ---- balancer
        \\          /                                    '------ three real servers
         real server

In the triangle all three are apart, so packets of the real server reach the client on their own path (QDSR, Fig. 11).
At the site, balancer and real servers are in one place, and all their packets to the client share one wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frontage_testbed.handoffconfig import RealServer
from frontage_testbed.nodes import Topo
from frontage_testbed.wires import WIRES, interface

CLIENT, BALANCER, SITE = "client", "balancer", "site"
CLIENT_ADDRESS, BALANCER_ADDRESS = "2001:db8:1::1", "2001:db8:1::2"
TO_CLIENT = (2, 6)
"""Ports on which packets leave for the client: in the triangle from the balancer, and from the real server."""
OWDS = {"A": (20, 10, 30), "B": (20, 20, 20), "C": (30, 30, 10)}
"""One-way delays in ms of the triangle's wires: client to balancer, balancer to real server, real server to client. In A,
the balancer is on the path.
"""


def delays(owd: Sequence[float], towards_client: str = "") -> Mapping[int, str]:
    """Return the triangle's link options by port, for one-way delays in ms as in `OWDS`. Links to the client also get
    `towards_client`.
    """
    links = {2 + 2 * wire + end: f"delay={round(1000 * owd[wire])}us" for wire in range(3) for end in (0, 1)}
    if towards_client:
        for port in TO_CLIENT:
            links[port] += f",{towards_client}"
    return links


class Triangle(Topo):  # type: ignore[misc]
    """One real server, with its own wires to the balancer and to the client."""

    real_servers = (RealServer("rs1", "2001:db8:2::3"),)

    def build(self) -> None:
        """Add hosts and links; mininet calls this."""
        self.addSwitch(WIRES, dpid="1", inNamespace=False)
        address = "ip address add {}/64 dev {} nodad"
        self.addHost(CLIENT, setup=[address.format(CLIENT_ADDRESS, "eth0"), address.format("2001:db8:3::1", "eth1")])
        balancer = [address.format(BALANCER_ADDRESS, "eth0"), address.format("2001:db8:2::2", "eth1")]
        self.addHost(BALANCER, setup=balancer)
        direct = f"ip -6 route add {CLIENT_ADDRESS} via 2001:db8:3::1"
        real_server = [address.format("2001:db8:2::3", "eth0"), address.format("2001:db8:3::3", "eth1"), direct]
        self.addHost("rs1", setup=real_server)
        ends = [
            (CLIENT, "eth0"),
            (BALANCER, "eth0"),
            (BALANCER, "eth1"),
            ("rs1", "eth0"),
            (CLIENT, "eth1"),
            ("rs1", "eth1"),
        ]
        for port, (host, name) in enumerate(ends, 2):
            self.addLink(WIRES, host, port1=port, intfName1=interface(port), intfName2=name)


class Site(Topo):  # type: ignore[misc]
    """Three real servers at the balancer's site."""

    real_servers = tuple(RealServer(f"rs{n}", f"2001:db8:1::1{n}") for n in (1, 2, 3))

    def build(self) -> None:
        """Add hosts and links; mininet calls this."""
        self.addSwitch(WIRES, dpid="1", inNamespace=False)
        inside = [(BALANCER, BALANCER_ADDRESS), *((r.name, r.address) for r in self.real_servers)]
        bridge = ["ip link add bridge type bridge", "ip link set bridge up", "ip link set wan master bridge"]
        bridge += [f"ip link set {name} master bridge" for name, _ in inside]
        for name, address in ((CLIENT, CLIENT_ADDRESS), *inside):
            self.addHost(name, setup=[f"ip address add {address}/64 dev eth0 nodad"])
        self.addHost(SITE, setup=bridge)
        self.addLink(WIRES, CLIENT, port1=2, intfName1=interface(2), intfName2="eth0")
        self.addLink(WIRES, SITE, port1=3, intfName1=interface(3), intfName2="wan")
        for name, _ in inside:
            self.addLink(SITE, name, intfName1=name, intfName2="eth0")

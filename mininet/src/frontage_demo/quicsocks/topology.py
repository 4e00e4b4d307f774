# SPDX-License-Identifier: Apache-2.0
"""The topology of QuicSocks' testbed.

    client ---- 30 ms ---- isp ---- 30 ms ---- server         round-trip times; each wire is two ports of one softswitch
                            |
               router, unbound, frontage-quicsocks      server: nsd, frontage-cclb7-quic (port 443, and 444 with Retry)

The proxy is on the path, half-way, beside the resolver, as the paper assumes for LTE (section IV-A).
"""

from __future__ import annotations

from frontage_testbed.nodes import Topo
from frontage_testbed.wires import WIRES, interface

CLIENT, ISP, SERVER = "client", "isp", "server"
ONE_WAY_MS = {2: 15.0, 3: 15.0, 4: 15.0, 5: 15.0}
"""Delay of packets that leave by each port, in ms."""

CLIENT_ADDRESS, ISP_ADDRESS = "2001:db8:c::2", "2001:db8:c::1"
SERVER_ADDRESS, ISP_SERVER_ADDRESS = "2001:db8:5::2", "2001:db8:5::1"


class Lte(Topo):  # type: ignore[misc]
    """Client, provider and server."""

    def build(self) -> None:
        """Add hosts and links; mininet calls this."""
        self.addSwitch(WIRES, dpid="1", inNamespace=False)
        self.addHost(CLIENT, setup=_host("eth0", CLIENT_ADDRESS, ISP_ADDRESS))
        router = ["echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]
        for name, address in (("client", ISP_ADDRESS), ("server", ISP_SERVER_ADDRESS)):
            router.append(f"ip address add {address}/64 dev {name} nodad")
        self.addHost(ISP, setup=router)
        self.addHost(SERVER, setup=_host("eth0", SERVER_ADDRESS, ISP_SERVER_ADDRESS))
        for port, host, name in ((2, CLIENT, "eth0"), (3, ISP, "client"), (4, ISP, "server"), (5, SERVER, "eth0")):
            self.addLink(WIRES, host, port1=port, intfName1=interface(port), intfName2=name)


def _host(name: str, address: str, gateway: str) -> list[str]:
    return [f"ip address add {address}/64 dev {name} nodad", f"ip -6 route add default via {gateway}"]

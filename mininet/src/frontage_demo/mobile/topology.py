# SPDX-License-Identifier: Apache-2.0
"""The topology of the testbed of mobile services.

    client ---- router ---- mobile       the router's host also runs the record servers of three sites

Links are wires of softswitch with the delays of the paper (section 2.2.3), or direct links, which are fast.
"""

from __future__ import annotations

from frontage_testbed.nodes import Topo
from frontage_testbed.wires import WIRES, interface

CLIENT, ROUTER, MOBILE = "client", "router", "mobile"
PREFIXES = {CLIENT: "2001:db8:c::", MOBILE: "2001:db8:5::"}
FIRST_HOST = 2
"""Number of a host's first address; the router has number 1."""
ONE_WAY_MS = {2: 10.0, 3: 10.0, 4: 42.5, 5: 42.5}
"""Delay of packets that leave by each port of the wires, in ms: a lookup takes 20 ms, and client and mobile are 105 ms apart."""


class Mobile(Topo):  # type: ignore[misc]
    """Client, router and mobile host."""

    def build(self, wires: bool) -> None:
        """Add hosts and links; mininet calls this."""
        setup = ["echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]
        setup += [f"ip addr add {prefix}1/64 dev {host} nodad" for host, prefix in PREFIXES.items()]
        self.addHost(ROUTER, setup=setup)
        for host, prefix in PREFIXES.items():
            self.addHost(host, setup=[f"ip addr add {prefix}{FIRST_HOST}/64 dev eth0 nodad", default_route(host)])
        if not wires:
            for host in PREFIXES:
                self.addLink(host, ROUTER, intfName1="eth0", intfName2=host)
            return
        self.addSwitch(WIRES, dpid="1", inNamespace=False)
        for port, host, name in ((2, CLIENT, "eth0"), (3, ROUTER, CLIENT), (4, ROUTER, MOBILE), (5, MOBILE, "eth0")):
            self.addLink(WIRES, host, port1=port, intfName1=interface(port), intfName2=name)


def default_route(host: str) -> str:
    """Return the command that sets a host's default route."""
    return f"ip -6 route replace default via {PREFIXES[host]}1 dev eth0"

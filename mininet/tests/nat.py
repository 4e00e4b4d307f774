# SPDX-License-Identifier: Apache-2.0
"""A NAT between clients and switch that changes its mappings during a connection."""

import json

from frontage_testbed.datacentre.addresses import QUIC_PORT
from frontage_testbed.nodes import Namespace

PORTS = "40000 60000"
"""Port range of the clients. The NAT's ports differ in the highest bit, so both can be distinguished."""
RULES = """
table inet nat {{
  counter passed {{}}
  chain out {{
    type filter hook postrouting priority raw;
    oifname edge {to} udp dport {port} udp sport set udp sport ^ 0x8000;
  }}
  chain in {{
    type filter hook prerouting priority raw;
    iifname edge udp sport {port} udp dport < 0x8000 counter name passed udp dport set udp dport ^ 0x8000;
  }}
}}
"""


class Nat:
    """A NAT that maps clients to other ports while it runs. Packets to either port reach the clients, so no packet in flight
    is lost.
    """

    def __init__(self, router: Namespace) -> None:
        self._router = router

    def start(self, to: str = "") -> None:
        """Start to map all packets, or those that the nftables expression `to` matches."""
        self._router.run(["nft", "--file", "-"], input=RULES.format(to=to, port=QUIC_PORT))

    def stop(self) -> int:
        """Stop, and return the number of packets that arrived at the other ports."""
        listed = self._router.run(["nft", "--json", "list", "counter", "inet", "nat", "passed"]).stdout
        self._router.run(["nft", "delete", "table", "inet", "nat"])
        (counter,) = (item["counter"] for item in json.loads(listed)["nftables"] if "counter" in item)
        return int(counter["packets"])


def choose_ports(client: Namespace) -> None:
    """Have a client host use ports in `PORTS`."""
    client.run(["sh", "-c", f"echo {PORTS} > /proc/sys/net/ipv4/ip_local_port_range"])

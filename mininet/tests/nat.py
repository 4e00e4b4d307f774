"""A NAT on the way from the clients to the switch that changes its mind in the midst of a connection."""

import json

from frontage_testbed.datacentre.addresses import QUIC_PORT
from frontage_testbed.nodes import Namespace

PORTS = "40000 60000"
"""That clients take, so that theirs and the NAT's, which differ by the highest bit, are known apart."""
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
    """What clients send is from another port as long as this is on; what comes for either port reaches them, so that
    nothing that was under way is lost.
    """

    def __init__(self, router: Namespace) -> None:
        self._router = router

    def start(self, to: str = "") -> None:
        """Of all that they send, or of what nftables' match `to` says."""
        self._router.run(["nft", "--file", "-"], input=RULES.format(to=to, port=QUIC_PORT))

    def stop(self) -> int:
        """How many packets came for the other ports."""
        listed = self._router.run(["nft", "--json", "list", "counter", "inet", "nat", "passed"]).stdout
        self._router.run(["nft", "delete", "table", "inet", "nat"])
        (counter,) = (item["counter"] for item in json.loads(listed)["nftables"] if "counter" in item)
        return int(counter["packets"])


def choose_ports(client: Namespace) -> None:
    """Have a client host take its ports from `PORTS`."""
    client.run(["sh", "-c", f"echo {PORTS} > /proc/sys/net/ipv4/ip_local_port_range"])

"""Ways that are cut for good or for a while: what would leave a host by its link is dropped there."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from scapy.utils import RawPcapReader

from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.handoffconfig import LINK_PORT, ORIGIN_PORT
from frontage_testbed.nodes import Namespace

PAYLOAD = 14 + 40 + 8
"""Octets of a frame before UDP's payload, over IPv6."""
RULES = """
table netdev cut {{
  chain out {{
    type filter hook egress device eth0 priority 0
    {matches}
  }}
}}
"""


@contextmanager
def dropping(host: Namespace, *matches: str) -> Iterator[None]:
    """What leaves the host and is like one of nftables' `matches` is dropped."""
    rules = RULES.format(matches="\n    ".join(f"{match} drop" for match in matches))
    host.run(["nft", "--file", "-"], input=rules)
    try:
        yield
    finally:
        host.run(["nft", "delete", "table", "netdev", "cut"])


@contextmanager
def without_link(testbed: QdsrTestbed, real_server: ServerAddresses) -> Iterator[None]:
    """Balancer and real server do not reach each other."""
    back = (f"udp sport {LINK_PORT}", f"tcp sport {ORIGIN_PORT}")
    with ExitStack() as cuts:
        cuts.enter_context(dropping(testbed.servers[real_server.index], *back))
        cuts.enter_context(dropping(testbed.servers[testbed.balancer.index], f"ip6 daddr {real_server.address6}"))
        yield


def times(pcap: Path) -> list[float]:
    """When the packets of a capture passed, in seconds of the clock that `time.time` shows."""
    with RawPcapReader(str(pcap)) as reader:
        return [about.sec + about.usec / 1e6 for _, about in reader]


def last_heard(sent: Path, received: Path) -> float:
    """When the last packet passed of those in one capture that the other has, too; both of IPv6."""
    with RawPcapReader(str(sent)) as reader:
        known = {frame[PAYLOAD:] for frame, _ in reader}
    with RawPcapReader(str(received)) as reader:
        return max(about.sec + about.usec / 1e6 for frame, about in reader if frame[PAYLOAD:] in known)

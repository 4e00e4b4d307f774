# SPDX-License-Identifier: Apache-2.0
"""Cuts paths: drops packets that would leave a host through its link."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from scapy.utils import RawPcapReader

from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.handoffconfig import LINK_PORT, ORIGIN_PORT
from frontage_testbed.nodes import Namespace

PAYLOAD = 14 + 40 + 8
"""Bytes of a frame before the UDP payload, over IPv6."""
RULES = """
table netdev cut {{
  chain out {{
    type filter hook egress device {device} priority 0
    {matches}
  }}
}}
"""


@contextmanager
def dropping(host: Namespace, *matches: str, device: str = "eth0") -> Iterator[None]:
    """Drop the packets that leave the host through a device and match one of the nftables expressions."""
    rules = RULES.format(device=device, matches="\n    ".join(f"{match} drop" for match in matches))
    host.run(["nft", "--file", "-"], input=rules)
    try:
        yield
    finally:
        host.run(["nft", "delete", "table", "netdev", "cut"])


@contextmanager
def without_link(testbed: QdsrTestbed, real_server: ServerAddresses) -> Iterator[None]:
    """Cut the path between the balancer and a real server in both directions."""
    back = (f"udp sport {LINK_PORT}", f"tcp sport {ORIGIN_PORT}")
    with ExitStack() as cuts:
        cuts.enter_context(dropping(testbed.servers[real_server.index], *back))
        cuts.enter_context(dropping(testbed.servers[testbed.balancer.index], f"ip6 daddr {real_server.address6}"))
        yield


def times(pcap: Path) -> list[float]:
    """Return the times of a capture's packets, in seconds of `time.time`."""
    with RawPcapReader(str(pcap)) as reader:
        return [metadata.sec + metadata.usec / 1e6 for _, metadata in reader]


def last_received(sent: Path, received: Path) -> float:
    """Return the time of the last packet that is in both captures, over IPv6."""
    with RawPcapReader(str(sent)) as reader:
        known = {frame[PAYLOAD:] for frame, _ in reader}
    with RawPcapReader(str(received)) as reader:
        return max(metadata.sec + metadata.usec / 1e6 for frame, metadata in reader if frame[PAYLOAD:] in known)

# SPDX-License-Identifier: Apache-2.0
"""Counters of a QuicSocks testbed: those of the proxy, and that of packets on the direct path."""

from frontage_demo.quicsocks.testbed import Testbed
from frontage_testbed.metricsclient import parse


def counters(testbed: Testbed) -> dict[str, int]:
    """Return the proxy's counters by family and label."""
    page = parse(testbed.proxy_metrics())
    families = (("names", "outcome"), ("flows_ended", "reason"), ("server_datagrams", "outcome"))
    return {
        f"{family} {name}": count
        for family, label in families
        for name, count in page.by(label, f"frontage_quicsocks_{family}_total").items()
    }


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return by how much counters have increased, without those that have not."""
    return {key: count - before.get(key, 0) for key, count in after.items() if count != before.get(key, 0)}


def direct_packets(testbed: Testbed) -> int:
    """Return the datagrams that the provider's router has forwarded: those of the direct path."""
    text = testbed.isp.run(["cat", "/proc/net/snmp6"]).stdout
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Ip6OutForwDatagrams"))

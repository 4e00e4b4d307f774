# SPDX-License-Identifier: Apache-2.0
"""Measures handshakes with and without the proxy, one after the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from frontage_testbed.metricsclient import parse
from frontage_testbed.nodes import NodeError

from . import files
from .model import Method, RoundTrips
from .testbed import Testbed
from .topology import ISP_ADDRESS, SERVER_ADDRESS

WARM, COLD = "warm", "cold"
PROXY = f"[{ISP_ADDRESS}]:{files.PROXY_PORT}"
RESOLVER = f"[{ISP_ADDRESS}]:53"


@dataclass(frozen=True)
class Row:
    """Handshakes of one kind."""

    method: Method
    start: str
    """With a proxy: whether its association exists already (warm) or is set up first (cold); "" without a proxy."""
    retry: bool
    cached: bool
    """True if the resolver has the name in its cache."""
    handshake_ms: list[float]
    migrated_ms: list[float]
    """Times until the first packet of the server arrived on the direct path, for clients that migrated."""

    @property
    def median_ms(self) -> float:
        """Median handshake time."""
        return median(self.handshake_ms)


@dataclass(frozen=True)
class Result:
    """All measurements."""

    round_trips: RoundTrips
    """Measured by ping, in ms."""
    rows: list[Row]
    proxy: dict[str, int]
    """The proxy's counters, by name."""

    def as_json(self) -> dict[str, Any]:
        """Return the results for `result.json`."""
        return asdict(self)


def measure(testbed: Testbed, handshakes: int) -> Result:
    """Measure this many handshakes of each kind. Raises NodeError if one fails, or does not migrate from the proxy."""
    round_trips = RoundTrips(
        dns=testbed.round_trip(testbed.client, ISP_ADDRESS),
        direct=testbed.round_trip(testbed.client, SERVER_ADDRESS),
        server=testbed.round_trip(testbed.isp, SERVER_ADDRESS),
    )
    # Fill the resolver's cache. The proxy's own cache does not matter: it is beside the resolver.
    testbed.load(testbed.isp, "--resolver", "[::1]:53", retry=False, names="known{}", handshakes=handshakes)
    rows = []
    for retry in (False, True):
        rows.append(_row(testbed, "status quo", "", retry, True, "known{}", handshakes, "--resolver", RESOLVER))
        through = ("--proxy", PROXY, "--migrate")
        rows.append(_row(testbed, "proposal", WARM, retry, True, "known{}", handshakes, *through))
        rows.append(_row(testbed, "proposal", COLD, retry, True, "known{}", handshakes, *through, "--cold"))
        fresh = f"fresh{int(retry)}"
        rows.append(_row(testbed, "status quo", "", retry, False, f"{fresh}a{{}}", handshakes, "--resolver", RESOLVER))
        rows.append(_row(testbed, "proposal", WARM, retry, False, f"{fresh}b{{}}", handshakes, *through))
    page = parse(testbed.proxy_metrics())
    counted = {
        f"{family} {name}": count
        for family, label in (("server_datagrams", "outcome"), ("flows_ended", "reason"), ("names", "outcome"))
        for name, count in page.by(label, f"frontage_quicsocks_{family}_total").items()
    }
    return Result(round_trips, rows, counted)


def _row(
    testbed: Testbed, method: Method, start: str, retry: bool, cached: bool, names: str, handshakes: int, *options: str
) -> Row:
    report = testbed.load(testbed.client, *options, retry=retry, names=names, handshakes=handshakes)
    if report["failed"] or report["stayed"]:
        raise NodeError(f"{method} {start}: not all handshakes succeeded: {report['failed']} {report['stayed']}")
    return Row(method, start, retry, cached, report["handshake_ms"], report["migrated_ms"])

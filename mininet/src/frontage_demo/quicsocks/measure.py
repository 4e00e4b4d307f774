"""The figures: handshakes by each way, one after the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from frontage_testbed.metricsclient import parse
from frontage_testbed.nodes import NodeError

from . import files
from .model import RoundTrips, Way
from .testbed import Testbed
from .topology import ISP_ADDRESS, SERVER_ADDRESS

WARM, COLD = "warm", "cold"
PROXY = f"[{ISP_ADDRESS}]:{files.PROXY_PORT}"
RESOLVER = f"[{ISP_ADDRESS}]:53"


@dataclass(frozen=True)
class Row:
    """Handshakes of one kind."""

    way: Way
    start: str
    """With a proxy: whether there is an association (warm), or one is made (cold). "" without."""
    retry: bool
    cached: bool
    """Whether the resolver knows the name already."""
    handshake_ms: list[float]
    migrated_ms: list[float]
    """Until the server was heard on the direct path, if the client went there."""

    @property
    def median_ms(self) -> float:
        """Of the handshakes."""
        return median(self.handshake_ms)


@dataclass(frozen=True)
class Result:
    """All of them."""

    round_trips: RoundTrips
    """As ping found them, ms."""
    rows: list[Row]
    proxy: dict[str, int]
    """What the proxy counted."""

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def measure(testbed: Testbed, handshakes: int) -> Result:
    """So many handshakes of each kind; all must succeed, and each that went through the proxy must migrate."""
    round_trips = RoundTrips(
        dns=testbed.round_trip(testbed.client, ISP_ADDRESS),
        direct=testbed.round_trip(testbed.client, SERVER_ADDRESS),
        server=testbed.round_trip(testbed.isp, SERVER_ADDRESS),
    )
    # The resolver learns the names that it is to know. What the proxy remembers does not matter: it is beside it.
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


def _row(testbed: Testbed, way: Way, start: str, retry: bool, cached: bool, names: str, handshakes: int, *options: str) -> Row:
    report = testbed.load(testbed.client, *options, retry=retry, names=names, handshakes=handshakes)
    if report["failed"] or report["stayed"]:
        raise NodeError(f"{way} {start}: not every handshake was well: {report['failed']} {report['stayed']}")
    return Row(way, start, retry, cached, report["handshake_ms"], report["migrated_ms"])

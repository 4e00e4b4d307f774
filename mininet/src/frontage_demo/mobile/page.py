# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/mobile.md: measurements beside the published figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.templates import PageTemplate, join

from .measure import Gaps, Throughput
from .topology import CLIENT, MOBILE

PUBLISHED_RTT = 105.0
"""Round-trip time between the paper's client and its mobile host, in ms (section 2.2.3)."""
PUBLISHED_SETUP = 2 * PUBLISHED_RTT
"""Time of msocket to set up a connection, and roughly to migrate one, in ms."""
_NAMES = {(MOBILE,): "the server moves", (CLIENT,): "the client moves", (MOBILE, CLIENT): "both move at once"}


@dataclass(frozen=True)
class Result:
    """All measurements."""

    round_trip: float
    """Measured by ping, in ms."""
    setups: list[float]
    """Times from connecting to the first byte from the service, in ms."""
    gaps: list[Gaps]
    throughput: Throughput


def gaps_table(result: Result) -> str:
    """Return the gaps in delivery."""
    rows = [
        (
            _NAMES[gaps.moving],
            f"{median(gaps.milliseconds):.0f} ms",
            f"{gaps.quantile(0.99):.0f} ms",
            f"{median(gaps.milliseconds) / result.round_trip:.1f}",
            str(len(gaps.milliseconds)),
            f"{gaps.resent:,.0f}",
        )
        for gaps in result.gaps
    ]
    return table(("", "gap, median", "gap, p99", "median in round trips", "moves", "bytes sent again"), rows)


def published_table(result: Result) -> str:
    """Return the measurements beside the published figures."""
    server, client = (median(gaps.milliseconds) for gaps in result.gaps if gaps.moving in ((MOBILE,), (CLIENT,)))
    rows = [
        ("set-up of a connection, address known", f"{PUBLISHED_SETUP:.0f} ms", f"{median(result.setups):.0f} ms"),
        ("an open connection resumes, without the name service", "about two round trips", f"{client:.0f} ms"),
        ("connecting to a host that moves once a second, lookup included, mean", "302 ms", "-"),
        ("an open connection resumes after the record has changed", "-", f"{server:.0f} ms"),
    ]
    return table(("", "msocket, published", "measured, median"), rows)


def throughput_table(result: Result) -> str:
    """Return the throughput without moves."""
    plain, carried = median(result.throughput.plain), median(result.throughput.carried)
    rows = [
        ("plain TCP", f"{plain / 1e9:.2f} Gbit/s", str(len(result.throughput.plain))),
        ("through both proxies", f"{carried / 1e9:.2f} Gbit/s", str(len(result.throughput.carried))),
    ]
    return table(("", "throughput, median", "downloads"), rows)


def page(result: Result) -> str:
    """Return the page as Markdown."""
    template = PageTemplate("mobile")
    return join(
        [
            template.section("introduction"),
            template.section("gaps", round_trip=f"{result.round_trip:.1f} ms", table=gaps_table(result)),
            template.section("published", table=published_table(result)),
            template.section("throughput", table=throughput_table(result)),
        ]
    )


def write(result: Result, docs: Path) -> Path:
    """Write the page below `docs`, and return its path."""
    path = docs / "results" / "mobile.md"
    path.write_text(page(result))
    return path

# SPDX-License-Identifier: Apache-2.0
"""The sections of the page about download rates: with losses (Fig. 13), and to single-path clients."""

from __future__ import annotations

import math

from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.templates import PageTemplate

from . import measure
from . import single_path as paths
from .measure import DISTANT_PROXY, Result
from .single_path import SinglePath
from .testbed import HANDOFF, ONE_PATH, PROXY
from .topology import OWDS

PROXIED, HANDED = 2 * OWDS["A"][0], sum(OWDS["A"])
"""Milliseconds from a packet to its acknowledgment in topology A: from the proxy, and from a real server."""
PAYLOAD = 1400
"""Approximate stream bytes per packet."""
CUBIC_FACTOR = math.sqrt(1.5)
"""Packets in flight times the square root of the loss rate (RFC 9438, section 4.3, where CUBIC is as fast as Reno)."""


def change(ours: float, proxy: float) -> str:
    """Return by how many per cent `ours` differs from `proxy`."""
    return f"{100 * (ours / proxy - 1):+.1f} %"


def expected(loss: float, round_trip: float) -> float:
    """Return the expected rate in Mbit/s for a loss rate and a round-trip time in ms; at most the link's rate."""
    rate = CUBIC_FACTOR / math.sqrt(loss) * 8e-3 * PAYLOAD / round_trip if loss else math.inf
    return min(rate, measure.RATE)


def figure_13(result: Result) -> str:
    """Return the table of download rates by loss rate."""
    cells = []
    for loss, mbits in result.rates.items():
        line = [f"{100 * float(loss):g} %"]
        for form, round_trip in ((PROXY, PROXIED), (HANDOFF, HANDED)):
            line += [f"{mbits[form]:.2f} Mbit/s", f"{expected(float(loss), round_trip):.2f}"]
        line += [
            change(mbits[HANDOFF], mbits[PROXY]),
            f"{mbits[DISTANT_PROXY]:.2f} Mbit/s",
            change(mbits[HANDOFF], mbits[DISTANT_PROXY]),
        ]
        cells.append(line)
    head = ["packets lost", "proxy", "expected", "hand-off", "expected", "hand-off against proxy", DISTANT_PROXY]
    return table([*head, f"hand-off against {DISTANT_PROXY}"], cells)


def figure_13_section(template: PageTemplate, result: Result) -> str:
    """Return the section about losses."""
    return template.section(
        "figure-13",
        rate=measure.RATE,
        queue=measure.QUEUE,
        proxied=PROXIED,
        handed=HANDED,
        factor=f"{CUBIC_FACTOR:.2f}",
        slower=f"{100 * (1 - PROXIED / HANDED):.0f}",
        payload=PAYLOAD,
        table=figure_13(result),
    )


def single_path(result: SinglePath) -> str:
    """Return the table of download rates by topology, with and without multipath."""
    cells = [
        [name, *(f"{mbits[form]:.1f} Mbit/s" for form in (PROXY, HANDOFF, ONE_PATH)), change(mbits[ONE_PATH], mbits[PROXY])]
        for name, mbits in result.rates.items()
    ]
    head = ["one-way delays, ms, as in Figure 12", PROXY, "hand-off, multipath client", ONE_PATH]
    return table([*head, "one path against proxy"], cells)


def lossy(result: SinglePath) -> str:
    """Return the table of download rates with losses."""
    cells = [
        [name, *(f"{mbits[form]:.1f} Mbit/s" for form in (PROXY, ONE_PATH)), change(mbits[ONE_PATH], mbits[PROXY])]
        for name, mbits in result.lossy.items()
    ]
    return table(["distance, packets lost", PROXY, ONE_PATH, "difference"], cells)


def single_path_section(template: PageTemplate, result: SinglePath) -> str:
    """Return the section about single-path clients."""
    return template.section(
        "single-path",
        rate=paths.RATE,
        queue=paths.QUEUE,
        size=paths.SIZE // 1_000_000,
        table=single_path(result),
        connections=paths.CONNECTIONS,
        seconds=paths.SECONDS * paths.TURNS,
        lossy=lossy(result),
    )

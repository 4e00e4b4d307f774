# SPDX-License-Identifier: Apache-2.0
"""The section of the page about the first byte of new connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from statistics import median

from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.templates import PageTemplate

from .early import KINDS, ROUNDS, SIZE, TOPOLOGIES, FirstBytes
from .rates import change
from .testbed import HANDOFF, ONE_PATH, PROXY

CONFIDENCE = 0.95


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the confidence interval of the median: the closest pair of order statistics that reaches `CONFIDENCE`.

    The number of values below the median has the binomial distribution with probability 1/2. With few values, the interval
    is their range.
    """
    ordered, count = sorted(values), len(values)
    outside, rank = 2 / 2**count, 0
    while rank + 1 < count / 2 and outside + 2 * comb(count, rank + 1) / 2**count <= 1 - CONFIDENCE:
        rank += 1
        outside += 2 * comb(count, rank) / 2**count
    return ordered[rank], ordered[-1 - rank]


def _cell(values: Sequence[float]) -> str:
    low, high = median_interval(values)
    return f"{median(values):.1f} ms ({low:.1f} to {high:.1f})"


def first_bytes(result: Mapping[str, FirstBytes]) -> str:
    """Return the table of times to the first byte."""
    cells = []
    for name, times in result.items():
        for kind in KINDS:
            proxy, ours = times[kind][PROXY], times[kind][HANDOFF]
            owds = ", ".join(map(str, TOPOLOGIES[name]))
            cells.append([f"{name}: {owds}", kind, _cell(proxy), _cell(ours), change(median(ours), median(proxy))])
    head = ["one-way delays, ms, as in Figure 12", "handshake", PROXY, ONE_PATH, "difference"]
    return table(head, cells)


def section(template: PageTemplate, result: Mapping[str, FirstBytes]) -> str:
    """Return the section about new connections."""
    return template.section("early-data", rounds=ROUNDS, size=SIZE, confidence=f"{100 * CONFIDENCE:.0f}", table=first_bytes(result))

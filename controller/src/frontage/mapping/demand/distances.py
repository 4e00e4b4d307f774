# SPDX-License-Identifier: Apache-2.0
"""RTTs from regions to sites, averaged over the prefixes of each region: the input of placement."""

from __future__ import annotations

import numpy as np

from frontage.mapping.compute.engine import Engine
from frontage.mapping.placement.values import Times


def region_rtts(engine: Engine) -> Times:
    """Return the mean RTTs in microseconds by [region, site], infinite where unknown. Region 0 has no RTTs."""
    of_row = engine.partition.of_row
    rtts = engine.latency.effective[: len(of_row)].astype(np.float64)
    known = np.isfinite(rtts)
    shape = int(of_row.max(initial=0)) + 1, len(engine.sites)
    total, count = np.zeros(shape), np.zeros(shape)
    np.add.at(total, of_row, np.where(known, rtts, 0.0))
    np.add.at(count, of_row, known)
    count[0] = 0
    means: Times = np.divide(total, count, out=np.full(shape, np.inf), where=count > 0).astype(np.float32)
    return means


def example_prefixes(engine: Engine, regions: list[int], most: int = 3) -> dict[int, list[str]]:
    """Return up to ``most`` prefixes of each region, to show to an operator."""
    examples: dict[int, list[str]] = {}
    for region in regions:
        rows = np.flatnonzero(engine.partition.of_row == region)[:most].tolist() if region else []
        examples[region] = [str(engine.latency.cover.prefixes[row]) for row in rows]
    return examples

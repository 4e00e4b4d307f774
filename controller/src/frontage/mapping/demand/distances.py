"""How far regions are from sites, as placement asks: from the prefixes of each."""

from __future__ import annotations

import numpy as np

from frontage.mapping.compute.engine import Engine
from frontage.mapping.placement.values import Times


def distances(engine: Engine) -> Times:
    """[region, site] mean RTTs of its prefixes in microseconds, infinite where none is known; region 0 is nowhere."""
    of_row = engine.partition.of_row
    rtts = engine.latency.effective[: len(of_row)].astype(np.float64)
    known = np.isfinite(rtts)
    shape = int(of_row.max(initial=0)) + 1, len(engine.sites)
    total, count = np.zeros(shape), np.zeros(shape)
    np.add.at(total, of_row, np.where(known, rtts, 0.0))
    np.add.at(count, of_row, known)
    count[0] = 0
    found: Times = np.divide(total, count, out=np.full(shape, np.inf), where=count > 0).astype(np.float32)
    return found


def examples(engine: Engine, regions: list[int], most: int = 3) -> dict[int, list[str]]:
    """Of each region some of its prefixes, for people."""
    found: dict[int, list[str]] = {}
    for region in regions:
        rows = np.flatnonzero(engine.partition.of_row == region)[:most].tolist() if region else []
        found[region] = [str(engine.latency.cover.prefixes[row]) for row in rows]
    return found

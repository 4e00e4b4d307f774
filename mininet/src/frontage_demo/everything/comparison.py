# SPDX-License-Identifier: Apache-2.0
"""The comparison: the same visits over Frontage, and over the same network with DNS, hashing, proxies and FIFO queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from .load import Finished

CLASSES = (("below 20 kB", 0, 20_000), ("20 to 100 kB", 20_000, 100_000), ("above 100 kB", 100_000, 1 << 40))
"""Size classes of objects: name, and smallest and next size in bytes."""


@dataclass(frozen=True)
class Times:
    """Completion times in seconds."""

    count: int
    mean: float
    median: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times:
        """Return the statistics of completion times. Raises ValueError without any."""
        if not seconds:
            raise ValueError("no completion times: nothing was downloaded")
        median, p99 = np.percentile(seconds, (50, 99))
        return cls(len(seconds), mean(seconds), float(median), float(p99))


@dataclass(frozen=True)
class Side:
    """One of the two networks."""

    visits: int
    failed: int
    rows: dict[str, Times]
    """Times by class: objects by size, the begin of a visit, and whole pages."""


BEGIN, PAGE = "name and connection", "page, from the name to the last object"


def side(visits: Sequence[Finished]) -> Side:
    """Return the completion times of visits; failed ones count as failed only."""
    good = [visit for visit in visits if visit.error is None]
    flows = [flow for visit in good for flow in visit.flows]
    rows = {BEGIN: Times.of([visit.flows[0].asked for visit in good])}
    rows |= {name: Times.of([flow.seconds for flow in flows if low <= flow.bytes < high]) for name, low, high in CLASSES}
    rows[PAGE] = Times.of([visit.seconds for visit in good])
    return Side(len(visits), len(visits) - len(good), rows)

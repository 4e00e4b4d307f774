# SPDX-License-Identifier: Apache-2.0
"""The mean round-trip time of a placement under the true demand, and the least that any placement reaches.

The model knows the demand that the clients generate and the published round-trip times between regions. It shares nothing with the
placer, which knows only what record servers count and measure; and the optimum is that of an exact solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from frontage.mapping.placement.optimum import optimum
from frontage.mapping.placement.routing import Matrices
from frontage.mapping.placement.values import Sites

from .testbed import round_trip

Demand = Mapping[str, Mapping[int, float]]
"""Requests per second by GUID and region."""
_AMPLE = 1e9
"""Capacity of a site in requests per second: these scenarios do not fill the sites."""


def mean_rtt(demand: Demand, placed: Mapping[str, Sequence[int]]) -> float:
    """Return the mean RTT in milliseconds from a request's region to the nearest site of its record."""
    total = sum(rate for regions in demand.values() for rate in regions.values())
    spent = sum(
        rate * min(_rtt(region, site) for site in placed[guid])
        for guid, regions in demand.items()
        for region, rate in regions.items()
    )
    return spent / total


def least_mean_rtt(demand: Demand, counts: Mapping[str, int], sites: Sequence[int]) -> float:
    """Return the least mean RTT in milliseconds with these numbers of sites per record. Raises ValueError without a solution."""
    reads = np.array([[demand[guid].get(site, 0.0) for site in sites] for guid in demand])
    rtts = np.array([[_rtt(a, b) * 1000 for b in sites] for a in sites])
    numbers = np.array([counts[guid] for guid in demand])
    found = optimum(
        Matrices(reads, np.zeros(len(demand)), reads), numbers, Sites.of([_AMPLE] * len(sites), rtts, ids=sites), gap=0.0
    )
    if found is None:
        raise ValueError("no placement can serve the demand")
    return found.bound / 1000


def _rtt(a: int, b: int) -> float:
    return 0.0 if a == b else round_trip(a, b)

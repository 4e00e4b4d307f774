# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes, by name."""

from __future__ import annotations

from frontage_testbed.load.workload import Cdf, load_cdf

_DATA_MINING = ((0, 0.0), (1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (267, 0.9), (2107, 0.95), (66_667, 0.99), (666_667, 1.0))
"""Flow sizes in a data-mining cluster (VL2, SIGCOMM 2009), as in pFabric: packets of 1,460 bytes, and cumulative probability."""

_STEPS = (1, 10_000, 20_000, 30_000, 50_000, 80_000, 200_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000)
_SHARES = (0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0)
"""Cumulative probabilities of `_STEPS`, in bytes: AIFO's simulation draws the lower end of each interval of the web-search workload."""


def _steps() -> Cdf:
    below = (0.0, *_SHARES[:-1])
    points = zip(_STEPS, below, _SHARES, strict=True)
    return Cdf(tuple((float(size), share) for size, *shares in points for share in shares))


def flow_sizes(name: str) -> Cdf:
    """Return the distribution in bytes. Raises ValueError for an unknown name, with the valid ones."""
    kind, _, values = name.partition(":")
    try:
        match kind:
            case "websearch":
                return load_cdf()
            case "websearch-steps":
                return _steps()
            case "datamining":
                return Cdf(tuple((1460.0 * packets, share) for packets, share in _DATA_MINING))
            case "fixed":
                return Cdf(((float(values), 0.0), (float(values), 1.0)))
            case "uniform":
                low, high = values.split("-")
                return Cdf(((float(low), 0.0), (float(high), 1.0)))
    except ValueError:
        pass
    raise ValueError("unknown distribution {}: use one of websearch, websearch-steps, datamining, fixed:BYTES and uniform:LOW-HIGH")

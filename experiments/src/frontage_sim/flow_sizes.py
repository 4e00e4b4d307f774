# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes, by name."""

from __future__ import annotations

from frontage_testbed.load.workload import Cdf, load_cdf

_DATA_MINING = ((0, 0.0), (1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (267, 0.9), (2107, 0.95), (66_667, 0.99), (666_667, 1.0))
"""Flow sizes in a data-mining cluster (VL2, SIGCOMM 2009), as in pFabric: packets of 1,460 bytes, and cumulative probability."""

_HADOOP = (
    (0, 0.0), (100, 0.01), (200, 0.02), (300, 0.05), (350, 0.15), (400, 0.2), (500, 0.3), (600, 0.4), (700, 0.5), (1000, 0.6),
    (2000, 0.67), (7000, 0.7), (30_000, 0.72), (50_000, 0.82), (80_000, 0.87), (120_000, 0.9), (300_000, 0.95), (1_000_000, 0.975),
    (2_000_000, 0.99), (10_000_000, 1.0),
)  # fmt: skip
"""Flow sizes in a Hadoop cluster of Facebook (Roy et al., SIGCOMM 2015) in bytes, as tabulated for HPCC (SIGCOMM 2019)."""

_CACHE_FOLLOWER = (
    (71, 0.0), (72, 0.027), (167, 0.035), (336, 0.177), (409, 0.187), (536, 0.276), (851, 0.354), (1403, 0.409), (2552, 0.445),
    (4642, 0.464), (14_249, 0.485), (32_430, 0.504), (56_624, 0.516), (102_994, 0.535), (182_407, 0.581), (282_042, 0.633),
    (448_093, 0.683), (815_053, 0.703), (1_434_756, 0.715), (1_900_265, 0.764), (2_294_411, 0.823), (2_741_807, 0.901),
    (3_113_431, 0.981), (3_520_031, 1.0),
)  # fmt: skip
"""Flow sizes of cache followers of Facebook within a cluster (Roy et al., SIGCOMM 2015) in bytes, as tabulated for NetBench."""

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
            case "cachefollower":
                return Cdf(tuple((float(size), share) for size, share in _CACHE_FOLLOWER))
            case "hadoop":
                return Cdf(tuple((float(size), share) for size, share in _HADOOP))
            case "fixed":
                return Cdf(((float(values), 0.0), (float(values), 1.0)))
            case "uniform":
                low, high = values.split("-")
                return Cdf(((float(low), 0.0), (float(high), 1.0)))
    except ValueError:
        pass
    raise ValueError(
        "unknown distribution {}: use one of websearch, websearch-steps, datamining, cachefollower, hadoop, fixed:BYTES "
        "and uniform:LOW-HIGH"
    )

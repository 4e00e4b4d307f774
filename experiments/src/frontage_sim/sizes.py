"""Distributions of flow sizes, by name."""

from __future__ import annotations

from frontage_demo.workload import Cdf, load_cdf

_DATA_MINING = ((0, 0.0), (1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (267, 0.9), (2107, 0.95), (66_667, 0.99), (666_667, 1.0))
"""Of a data-mining cluster (VL2, SIGCOMM 2009), as pFabric tabulates it: packets of 1,460 bytes, cumulative probability."""


def sizes(name: str) -> Cdf:
    """The distribution in bytes. Raises ValueError, which says what there is."""
    kind, _, values = name.partition(":")
    try:
        match kind:
            case "websearch":
                return load_cdf()
            case "datamining":
                return Cdf(tuple((1460.0 * packets, share) for packets, share in _DATA_MINING))
            case "fixed":
                return Cdf(((float(values), 0.0), (float(values), 1.0)))
            case "uniform":
                low, high = values.split("-")
                return Cdf(((float(low), 0.0), (float(high), 1.0)))
    except ValueError:
        pass
    raise ValueError("no distribution of sizes: there are websearch, datamining, fixed:BYTES and uniform:LOW-HIGH")

# SPDX-License-Identifier: Apache-2.0
"""Dependence of figure 2 on the drawn topology: the latency ratios at load 1 in ten topologies."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

SCHEMES = {
    "frontage": "Frontage",
    "auspice": "Auspice's heuristic",
    "random-3": "Random-M",
    "dht-any-hop": "DHT+Popularity, base 16, any hop",
    "dht-codons": "DHT+Popularity, base 16, near hops",
    "dht-closest": "DHT+Popularity, base 2, to the closest",
}
PUBLISHED = {"random-3": 5.7, "dht-any-hop": 9.0}


def evaluate(rows: pl.DataFrame) -> Result:
    topologies = rows.group_by("seed", "scheme", maintain_order=True).agg(pl.col("lookup").mean() * 1e3)
    base = topologies.filter(pl.col("scheme") == "auspice").select("seed", base="lookup")
    ratios = topologies.join(base, on="seed", maintain_order="left").with_columns(ratio=pl.col("lookup") / pl.col("base"))
    lines = []
    for scheme, name in SCHEMES.items():
        of_scheme = ratios.filter(pl.col("scheme") == scheme)
        lookup, ratio = of_scheme["lookup"], of_scheme["ratio"]
        lines.append((name, lookup.mean(), PUBLISHED.get(scheme), ratio.mean(), ratio.min(), ratio.max()))
    columns = ["scheme", "lookup (ms)", "published ratio to Auspice's heuristic", "our ratio", "minimum", "maximum"]
    figure = Figure(figsize=(6, 2.6))
    axes = figure.subplots()
    for row, scheme in enumerate(SCHEMES):
        values = ratios.filter(pl.col("scheme") == scheme)["ratio"]
        axes.plot(values, [row] * len(values), "o", markersize=3, alpha=0.6)
        if scheme in PUBLISHED:
            axes.plot([PUBLISHED[scheme]], [row], "k^", markersize=6, label="published" if scheme == "random-3" else None)
    axes.set_yticks(range(len(SCHEMES)), list(SCHEMES.values()))
    axes.invert_yaxis()
    axes.set(xlabel="lookup latency at load 1, as a multiple of Auspice's heuristic", xlim=(0, None))
    axes.legend(fontsize=7)
    return Result(pl.DataFrame(lines, schema=columns, orient="row"), figure)

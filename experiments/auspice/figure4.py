# SPDX-License-Identifier: Apache-2.0
"""Time to connect and share of stale lookups against the rate of moves, by simulation and by the analytical model."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

PUBLISHED = {1 / 64: (230.0, None), 1.0: (302.0, 26.0)}
"""Mean in ms and stale lookups in %, by moves per second."""


def evaluate(rows: pl.DataFrame) -> Result:
    table = rows.select(
        pl.format("1/{}", (1 / pl.col("rate")).cast(pl.Int64)).alias("moves per second"),
        pl.col("rate").map_elements(lambda rate: PUBLISHED.get(rate, (None, None))[0], pl.Float64).alias("published (ms)"),
        (pl.col("mean") * 1e3).alias("ours (ms)"),
        (pl.col("expected") * 1e3).alias("model (ms)"),
        pl.col("rate").map_elements(lambda rate: PUBLISHED.get(rate, (None, None))[1], pl.Float64).alias("published stale (%)"),
        (pl.col("stale") * 100).alias("ours (%)"),
        (pl.col("expected_stale") * 100).alias("model (%)"),
    )
    figure = Figure(figsize=(6, 3.2))
    axes = figure.subplots()
    axes.fill_between(rows["rate"], rows["p10"] * 1e3, rows["p90"] * 1e3, alpha=0.2, label="10th to 90th percentile")
    axes.plot(rows["rate"], rows["mean"] * 1e3, "o", markersize=4, label="mean, simulated")
    axes.plot(rows["rate"], rows["expected"] * 1e3, linewidth=1, label="mean, analytical")
    axes.plot(list(PUBLISHED), [mean for mean, _ in PUBLISHED.values()], "k^", markersize=5, label="mean, published")
    axes.set(xscale="log", xlabel="moves per second", ylabel="time to connect (ms)", ylim=(0, None))
    axes.set_xscale("log", base=2)
    axes.legend(fontsize=7)
    return Result(table, figure)

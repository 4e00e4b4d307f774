# SPDX-License-Identifier: Apache-2.0
"""Throughput of six flows over time, while the remaining processing times that they signal rotate."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

TABLE = "throughput"
PERIOD = 5
"""Seconds between rotations."""
SETTLED = 1
"""Seconds of each period that the table leaves out."""


def evaluate(received: pl.DataFrame) -> Result:
    numbered = received.with_columns(seconds=pl.col("time") / 1e9, flow=pl.col("flow") - 1).sort("flow", "seconds")
    mbits = pl.col("received").diff() * 8e-6 / pl.col("seconds").diff()
    rate = numbered.with_columns(mbits=mbits.over("flow")).drop_nulls()
    return Result(_table(rate), _plot(rate))


def _table(rate: pl.DataFrame) -> pl.DataFrame:
    """Return the mean rate of each flow in each period, without its first second. A sample covers the interval before its time."""
    begin = ((pl.col("seconds") - 1e-9) // PERIOD * PERIOD).cast(pl.Int64)
    settled = rate.with_columns(begin=begin).filter(pl.col("seconds") - pl.col("begin") > SETTLED)
    means = settled.group_by("begin", "flow").agg(pl.col("mbits").mean().round().cast(pl.Int64)).sort("begin", "flow")
    named = means.with_columns(
        pl.format("flow {} (Mbit/s)", "flow").alias("flow"), pl.format("{} to {} s", "begin", pl.col("begin") + PERIOD)
    )
    return named.pivot("flow", index="begin", values="mbits").rename({"begin": "period"})


def _plot(rate: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    for (flow,), rows in rate.group_by("flow", maintain_order=True):
        axes.plot(rows["seconds"], rows["mbits"], label=f"flow {flow}")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.legend(fontsize=7, ncols=6, loc="upper center", bbox_to_anchor=(0.5, 1.15))
    return figure

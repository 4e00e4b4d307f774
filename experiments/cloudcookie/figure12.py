# SPDX-License-Identifier: Apache-2.0
"""FCT of four variants of CCLB4, and their differences from the first."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result, plus_minus
from frontage_sim.measures import FCT, SHORT_MEAN, SHORT_P99
from frontage_sim.results import over_seeds

MEASURES = {"mean": FCT.mean(), "mean, up to 100 kB": SHORT_MEAN, "99th percentile, up to 100 kB": SHORT_P99}


def evaluate(flows: pl.DataFrame) -> Result:
    measured = {name: over_seeds(flows, ["variant"], value) for name, value in MEASURES.items()}
    relative = [
        frame.select(
            pl.format("{} %", ((pl.col("mean") / pl.col("mean").first() - 1) * 100).round().cast(pl.Int64)).alias(
                f"{name}, relative to QUIC"
            )
        )
        for name, frame in measured.items()
    ]
    return Result(pl.concat([plus_minus(measured, ["variant"], "ms"), *relative], how="horizontal"), _plot(measured))


def _plot(measured: dict[str, pl.DataFrame]) -> Figure:
    figure = Figure(figsize=(9, 3))
    for axes, (name, frame) in zip(figure.subplots(1, len(measured)), measured.items(), strict=True):
        axes.bar(frame["variant"], frame["mean"], 0.6, yerr=frame["half_width"], capsize=2)
        axes.tick_params("x", rotation=25)
        axes.set_title(name, fontsize=9)
        axes.set_ylabel("FCT (ms)")
    return figure

# SPDX-License-Identifier: Apache-2.0
"""FCT of variants of a system, and their differences from the first one."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result, plus_minus
from frontage_sim.measures import FCT, SHORT_MEAN, SHORT_P99
from frontage_sim.results import against, confidence, per_seed

MEASURES = {"mean": FCT.mean(), "mean, up to 100 kB": SHORT_MEAN, "99th percentile, up to 100 kB": SHORT_P99}


def compare_variants(flows: pl.DataFrame) -> Result:
    """Compare the completion times of the values of ``variant``: a table with 95 % confidence intervals, and a plot.

    The differences are those of the same seeds, which have the same arrivals.
    """
    by = ["variant"]
    each = {name: per_seed(flows, by, value) for name, value in MEASURES.items()}
    measured = {name: confidence(values, by) for name, values in each.items()}
    base = str(flows["variant"][0])
    relative = [
        confidence(against(values, by, {"variant": base}), by).select(_percent().alias(f"{name}, relative to {base}"))
        for name, values in each.items()
    ]
    return Result(pl.concat([plus_minus(measured, by, "ms"), *relative], how="horizontal"), _plot(measured))


def _percent() -> pl.Expr:
    """Format a ratio and its interval as a difference in percent."""
    difference = ((pl.col("mean") - 1) * 100).round().cast(pl.Int64)
    return pl.format("{} ± {} %", difference, (pl.col("half_width") * 100).round().cast(pl.Int64))


def _plot(measured: dict[str, pl.DataFrame]) -> Figure:
    figure = Figure(figsize=(9, 3))
    for axes, (name, frame) in zip(figure.subplots(1, len(measured)), measured.items(), strict=True):
        axes.bar(frame["variant"], frame["mean"], 0.6, yerr=frame["half_width"], capsize=2)
        axes.tick_params("x", rotation=25)
        axes.set_title(name, fontsize=9)
        axes.set_ylabel("FCT (ms)")
    return figure

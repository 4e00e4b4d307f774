# SPDX-License-Identifier: Apache-2.0
"""Five schedulers on the web-search workload, compared with AIFO's published table."""

from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result
from frontage_sim.measures import FCT, MIN_LONG, SHORT_MEAN, SHORT_P99

FROM_1MB = FCT.filter(pl.col("size") >= MIN_LONG).mean()
"""The paper's long flows include those of exactly 1 MB, which are a tenth of all flows."""
MEASURES = {"mean_below_100KB": SHORT_MEAN, "p99_below_100KB": SHORT_P99, "mean_from_1MB": FROM_1MB}
LOADS = (0.2, 0.8)
CODES = "_codes"
"""Suffix of a rival whose ranks are the cookie's codes; the published ranks are exact."""
TOLERANCE = 0.25
"""Relative difference up to which a number counts as reproduced."""


def evaluate(flows: pl.DataFrame) -> Result:
    published = pl.read_csv(Path(__file__).with_name("published.csv"), comment_prefix="#")
    published = published.unpivot(index=["metric", "load"], variable_name="rival", value_name="published (ms)")
    ours = flows.group_by("rival", pl.col("load").cast(pl.Float64), maintain_order=True).agg(**MEASURES)
    ours = ours.unpivot(index=["rival", "load"], variable_name="metric", value_name="ours (ms)")
    ours = ours.with_columns(pl.col("rival").str.strip_suffix(CODES).alias("as"))
    published = published.rename({"rival": "as"})
    both = published.join(ours, on=["metric", "load", "as"], maintain_order="left_right")
    ratio = pl.col("ours (ms)") / pl.col("published (ms)")
    close = pl.when((ratio - 1).abs() <= TOLERANCE).then(pl.lit("yes")).otherwise(pl.lit("no"))
    table = both.select("metric", "load", "rival", "published (ms)", "ours (ms)", ratio.alias("ratio"), close.alias("within 25 %"))
    return Result(table, _plot(table))


def _plot(table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(9, 5))
    grid = figure.subplots(len(LOADS), len(MEASURES))
    for row, load in zip(grid, LOADS, strict=True):
        for axes, metric in zip(row, MEASURES, strict=True):
            shown = table.filter((pl.col("metric") == metric) & (pl.col("load") == load))
            positions = range(shown.height)
            axes.bar([x - 0.2 for x in positions], shown["published (ms)"], 0.38, label="published", color="0.7")
            axes.bar([x + 0.2 for x in positions], shown["ours (ms)"], 0.38, label="ours")
            axes.set_xticks(positions, shown["rival"].to_list(), fontsize=7)
            axes.set_title(f"{metric}, load {load}", fontsize=8)
    grid[0][0].set_ylabel("FCT (ms)")
    grid[0][-1].legend()
    return figure

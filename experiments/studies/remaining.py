# SPDX-License-Identifier: Apache-2.0
"""Completion times under rules that use the remaining time of a server's flows, relative to the shipped score."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.comparison import compare, with_short_flows
from frontage_sim.figures import Result
from frontage_sim.measures import FCT, LONG_MEAN, SHORT_MEAN
from frontage_sim.results import against, confidence, per_seed

MEASURES = {"mean": FCT.mean(), "mean, up to 100 kB": SHORT_MEAN, "mean, above 1 MB": LONG_MEAN}
WEIGHTS = {"shipped": "0", **{f"RPT 1/{part}": f"1/{part}" for part in (32, 16, 8, 4, 2)}}
"""Parts of a flow that a doubling of the remaining time adds to the shipped score, by rule."""
BASE = {"rule": "shipped"}


def evaluate(flows: pl.DataFrame) -> Result:
    settings = flows.with_columns(pl.format("{}, load {}", "sizes", "load").alias("setting"))
    by = ["setting", "rule"]
    each = {f"{name} (ms)": per_seed(settings, by, value) for name, value in MEASURES.items()}
    result = with_short_flows(compare(each, "rule", "setting", BASE, ordered=False), settings, by)
    return Result(result.table, _plot(flows))


def _plot(flows: pl.DataFrame) -> Figure:
    """Show the mean by the weight of the remaining time, with a panel for each load."""
    by = ["sizes", "load", "rule"]
    ratios = confidence(against(per_seed(flows, by, FCT.mean()), by, BASE), by)
    loads, sizes = (ratios[field].unique(maintain_order=True).to_list() for field in ("load", "sizes"))
    figure = Figure(figsize=(9, 3))
    panels = figure.subplots(1, len(loads), sharey=True)
    for axes, load in zip(panels, loads, strict=True):
        for number, name in enumerate(sizes):
            shown = ratios.filter((pl.col("load") == load) & (pl.col("sizes") == name) & pl.col("rule").is_in(list(WEIGHTS)))
            positions = [list(WEIGHTS).index(rule) + 0.1 * (number - 1) for rule in shown["rule"]]
            axes.errorbar(positions, shown["mean"], shown["half_width"], fmt="o-", markersize=3, capsize=2, linewidth=1, label=name)
        axes.axhline(1, color="0.6", linewidth=0.8)
        axes.set_xticks(range(len(WEIGHTS)), list(WEIGHTS.values()))
        axes.set_title(f"load {load}", fontsize=9)
        axes.set_xlabel("flows per doubling of RPT")
    panels[0].set_ylabel("mean FCT, multiple of shipped", fontsize=8)
    panels[0].legend(fontsize=7)
    return figure

# SPDX-License-Identifier: Apache-2.0
"""AIFO and DCTCP at the low load, with and without queues in the hosts."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result
from frontage_sim.measures import SHORT_MEAN, SHORT_P99


def evaluate(flows: pl.DataFrame) -> Result:
    retransmitted = (pl.col("retransmitted").sum() / (pl.col("size") / 1380).ceil().sum()).alias("retransmitted")
    measures = {"mean_below_100KB (ms)": SHORT_MEAN, "p99_below_100KB (ms)": SHORT_P99}
    table = flows.group_by("hosts", "rival", maintain_order=True).agg(retransmitted, **measures)
    return Result(table, _plot(table))


def _plot(table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(6, 3))
    axes = figure.subplots()
    rivals = table["rival"].unique(maintain_order=True).to_list()
    for group, hosts in enumerate(table["hosts"].unique(maintain_order=True)):
        shown = table.filter(pl.col("hosts") == hosts)
        positions = [n + 0.4 * group - 0.2 for n in range(shown.height)]
        axes.bar(positions, shown["mean_below_100KB (ms)"], 0.38, label=f"hosts {hosts}")
    axes.set_xticks(range(len(rivals)), rivals)
    axes.set_ylabel("mean FCT below 100 kB (ms)")
    axes.legend()
    return figure

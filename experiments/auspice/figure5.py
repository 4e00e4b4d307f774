# SPDX-License-Identifier: Apache-2.0
"""Lookup latency while demand moves: how soon it is as low as before, and the cost in messages."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

SHIFT, EPOCH = 300.0, 75.0
ADAPTED = 1.15
"""Lookup latency below which placement has adapted, as a multiple of the latency in the last epoch before the next move."""


def evaluate(rows: pl.DataFrame) -> Result:
    moves = rows.with_columns(
        since=((pl.col("time") % SHIFT) // EPOCH).cast(pl.Int64), move=(pl.col("time") // SHIFT).cast(pl.Int64)
    )
    by_epoch = moves.filter(pl.col("move") > 0).group_by("since").agg(pl.col("lookup").mean() * 1e3, pl.col("nearest").mean() * 1e3)
    table = by_epoch.sort("since").select(
        (pl.col("since") + 1).alias("epoch after demand moved"),
        pl.col("lookup").alias("lookups (ms)"),
        pl.col("nearest").alias("with a replica everywhere (ms)"),
    )
    settled = float(table["lookups (ms)"][-1])
    after = [
        epoch
        for epoch, lookup in table.select("epoch after demand moved", "lookups (ms)").iter_rows()
        if lookup <= ADAPTED * settled
    ]
    shares = pl.DataFrame(
        [
            ("epochs until within 15 % of settled", 2.0, float(after[0] - 1)),
            ("messages per request (%)", 3.6, float(rows["messages so far"][-1]) * 100),
            ("messages per request, worst epoch (%)", None, float(rows["messages"].max()) * 100),  # type: ignore[arg-type]
        ],
        schema={"what": pl.String, "published": pl.Float64, "ours": pl.Float64},
        orient="row",
    )
    combined = pl.concat(
        [
            shares,
            table.select(
                pl.format("lookups in epoch {} after demand moved (ms)", "epoch after demand moved").alias("what"),
                pl.lit(None, pl.Float64).alias("published"),
                pl.col("lookups (ms)").alias("ours"),
            ),
        ]
    )
    return Result(combined, _plot(rows))


def _plot(rows: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(8, 4.5))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    above.plot(rows["time"], rows["lookup"] * 1e3, "o-", markersize=2, linewidth=1, label="mean lookup")
    above.plot(rows["time"], rows["nearest"] * 1e3, "--", color="0.6", linewidth=1, label="with a replica everywhere")
    above.set(ylabel="lookup latency (ms)", ylim=(0, None))
    above.legend(fontsize=7)
    below.step(rows["time"], rows["messages"] * 100, where="mid", linewidth=1, label="in the epoch")
    below.plot(rows["time"], rows["messages so far"] * 100, linewidth=1, label="so far")
    below.axhline(3.6, color="0.6", linewidth=0.8)
    below.set(xlabel="time (s)", ylabel="messages (%)", ylim=(0, None))
    below.legend(fontsize=7)
    for number in range(1, int(max(rows["time"]) // SHIFT) + 1):
        above.axvline(number * SHIFT, color="0.8", linewidth=0.8)
    return figure

# SPDX-License-Identifier: Apache-2.0
"""Mean RTT and load of the fullest server by nu, for the paper's choice of the sites by locality and for ours."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

CHOICES = {"paper": "the paper's", "frontage": "ours"}
PLANS = {"first": "first plan", "settled": "settled"}


def evaluate(rows: pl.DataFrame) -> Result:
    means = rows.group_by("load", "choice", "nu", "plan", maintain_order=True).agg(
        pl.col("mean").mean() * 1e3, pl.col("fullest").mean() * 100
    )
    table = means.select("load", "choice", "nu").unique(maintain_order=True)
    for plan, name in PLANS.items():
        columns = means.filter(pl.col("plan") == plan).select(
            "load",
            "choice",
            "nu",
            pl.col("mean").alias(f"{name}: mean RTT (ms)"),
            pl.col("fullest").alias(f"{name}: fullest server (% of capacity)"),
        )
        table = table.join(columns, on=["load", "choice", "nu"], maintain_order="left")
    figure = Figure(figsize=(7, 3))
    for axes, plan in zip(figure.subplots(1, 2, sharey=True), PLANS, strict=True):
        for (load, choice), part in means.filter(pl.col("plan") == plan).group_by("load", "choice", maintain_order=True):
            style = "-" if choice == "frontage" else "--"
            axes.plot(part["nu"], part["mean"], style, marker="o", markersize=3, label=f"{CHOICES[str(choice)]}, load {load:g}")
        axes.set(title=PLANS[plan], xlabel="nu", ylim=(0, None))
    figure.axes[0].set_ylabel("mean RTT (ms)")
    figure.axes[0].legend(fontsize=6)
    return Result(table.with_columns(pl.col("choice").replace(CHOICES)).rename({"choice": "sites by locality"}), figure)

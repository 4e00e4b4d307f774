# SPDX-License-Identifier: Apache-2.0
"""Time until all replicas have confirmed an update to the client, and the published delays of providers of managed DNS."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

PROVIDERS = {"the fastest of three providers (s)": 1.1, "the slowest (s)": 24.7}
"""Difference in seconds between a provider's median and Auspice's with five replicas (introduction; the caption of figure 7 has 1.0)."""
PROVIDER_REPLICAS = 5
"""Number of replicas of a provider."""


def evaluate(rows: pl.DataFrame) -> Result:
    table = rows.group_by("replicas", maintain_order=True).agg(
        (pl.col("duration").median() * 1e3).alias("median (ms)"), (pl.col("duration").quantile(0.95) * 1e3).alias("95 % (ms)")
    )
    base = float(table.filter(pl.col("replicas") == PROVIDER_REPLICAS)["median (ms)"].item())
    providers = [
        pl.when(pl.col("replicas") == PROVIDER_REPLICAS).then(base / 1e3 + difference).alias(name)
        for name, difference in PROVIDERS.items()
    ]
    figure = Figure(figsize=(6, 3))
    axes = figure.subplots()
    for (replicas,), frame in rows.group_by("replicas", maintain_order=True):
        values = frame["duration"].sort() * 1e3
        axes.plot(values, [(i + 1) / len(values) for i in range(len(values))], linewidth=1, label=f"{replicas} replicas")
    for number, difference in enumerate(PROVIDERS.values()):
        label = None if number else "medians of providers: ours with 5 replicas plus the published difference"
        axes.axvline(base + difference * 1e3, color="k", linestyle=":", linewidth=1, label=label)
    axes.axvspan(*(base + difference * 1e3 for difference in PROVIDERS.values()), color="0.9")
    axes.set(xlabel="update propagation delay (ms)", ylabel="share of updates", xscale="log")
    axes.legend(fontsize=7, loc="lower right")
    return Result(table.with_columns(providers), figure)

# SPDX-License-Identifier: Apache-2.0
"""Until all replicas have confirmed an update to the client; what providers of managed DNS take longer, as published."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

PROVIDERS = {"the fastest of three providers (s)": 1.1, "the slowest (s)": 24.7}
"""Seconds that the median is longer than Auspice's with five replicas (in the paper's introduction; figure 7's caption has 1.0)."""
LIKE = 5
"""Replicas: as many as the providers have."""


def evaluate(rows: pl.DataFrame) -> Result:
    table = rows.group_by("replicas", maintain_order=True).agg(
        (pl.col("took").median() * 1e3).alias("median (ms)"), (pl.col("took").quantile(0.95) * 1e3).alias("95 % (ms)")
    )
    base = float(table.filter(pl.col("replicas") == LIKE)["median (ms)"].item())
    told = [pl.when(pl.col("replicas") == LIKE).then(base / 1e3 + more).alias(name) for name, more in PROVIDERS.items()]
    figure = Figure(figsize=(6, 3))
    axes = figure.subplots()
    for (replicas,), frame in rows.group_by("replicas", maintain_order=True):
        values = frame["took"].sort() * 1e3
        axes.plot(values, [(i + 1) / len(values) for i in range(len(values))], linewidth=1, label=f"{replicas} replicas")
    for number, more in enumerate(PROVIDERS.values()):
        label = None if number else "providers' medians: ours with 5 and what is published"
        axes.axvline(base + more * 1e3, color="k", linestyle=":", linewidth=1, label=label)
    axes.axvspan(*(base + more * 1e3 for more in PROVIDERS.values()), color="0.9")
    axes.set(xlabel="update propagation delay (ms)", ylabel="share of updates", xscale="log")
    axes.legend(fontsize=7, loc="lower right")
    return Result(table.with_columns(told), figure)

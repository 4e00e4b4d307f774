# SPDX-License-Identifier: Apache-2.0
"""Median lookup latency of names with 5, 10 and 15 replicas placed by demand, and with 16 static sites."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

PUBLISHED = {("static, best sites, anycast 37%", 16): 45.0, ("auspice", 5): 41.0, ("auspice", 10): 22.0, ("auspice", 15): 18.0}
HOMES = {"any": "ours (ms)", "US": "ours, names of the US (ms)"}
DRAWN = ("static, best sites", "static, best sites, anycast 37%", "frontage", "auspice")


def evaluate(rows: pl.DataFrame) -> Result:
    ms = rows.filter(~pl.col("scheme").str.starts_with("static, any sites,")).with_columns(pl.col("lookup") * 1e3)
    by = ["scheme", "replicas"]
    table = ms.select(by).unique(maintain_order=True)
    published = [PUBLISHED.get(key) for key in table.iter_rows()]
    table = table.with_columns(pl.Series("published (ms)", published, pl.Float64))
    for home, column in HOMES.items():
        medians = ms.filter(pl.col("home") == home).group_by(by, maintain_order=True).agg(pl.col("lookup").median().alias(column))
        table = table.join(medians, on=by, how="left", maintain_order="left")
    topologies = (
        ms.filter(pl.col("home") == "any").group_by(*by, "seed").agg(pl.col("lookup").median(), pl.col("misrouted").first())
    )
    spread = topologies.group_by(by).agg(
        pl.format("{} to {}", pl.col("lookup").min().round_sig_figs(3), pl.col("lookup").max().round_sig_figs(3)).alias(
            "in ten topologies"
        ),
        (pl.col("misrouted").mean() * 100).alias("100 ms too far (%)"),
    )
    table = table.join(spread, on=by, how="left", maintain_order="left")
    figure = Figure(figsize=(6, 3.2))
    axes = figure.subplots()
    drawn = ms.filter(pl.col("scheme").is_in(DRAWN) & (pl.col("home") == "any"))
    for (scheme, replicas), frame in drawn.group_by("scheme", "replicas", maintain_order=True):
        values = frame["lookup"].sort()
        style = "--" if str(scheme).startswith("static") else ":" if scheme == "auspice" else "-"
        axes.plot(values, [(i + 1) / len(values) for i in range(len(values))], style, linewidth=1, label=f"{scheme}, {replicas}")
    axes.set(xlabel="median lookup latency of a name (ms)", ylabel="share of names", xlim=(0, 120))
    axes.legend(fontsize=6)
    return Result(table, figure)

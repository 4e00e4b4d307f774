"""Names' median lookups with 5, 10 and 15 replicas placed by demand, and with 16 static sites."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

PUBLISHED = {("static, best sites", 16): 45.0, ("auspice", 5): 41.0, ("auspice", 10): 22.0, ("auspice", 15): 18.0}


def evaluate(rows: pl.DataFrame) -> Result:
    ms = rows.with_columns(pl.col("lookup") * 1e3)
    table = ms.group_by("scheme", "replicas", maintain_order=True).agg(
        pl.col("lookup").median().alias("ours, median (ms)"), pl.col("lookup").quantile(0.9).alias("90 % of names (ms)")
    )
    told = [PUBLISHED.get(key) for key in table.select("scheme", "replicas").iter_rows()]
    table = table.with_columns(pl.Series("published, median (ms)", told, pl.Float64))
    figure = Figure(figsize=(6, 3.2))
    axes = figure.subplots()
    for (scheme, replicas), frame in ms.group_by("scheme", "replicas", maintain_order=True):
        values = frame["lookup"].sort()
        style = "--" if str(scheme).startswith("static") else ":" if scheme == "auspice" else "-"
        axes.plot(values, [(i + 1) / len(values) for i in range(len(values))], style, linewidth=1, label=f"{scheme}, {replicas}")
    axes.set(xlabel="median lookup latency of a name (ms)", ylabel="share of names", xlim=(0, None))
    axes.legend(fontsize=6)
    return Result(table, figure)

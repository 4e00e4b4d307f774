# SPDX-License-Identifier: Apache-2.0
"""Lookup latency, update cost and update latency against load, by scheme; what each sustains."""

from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

FAILED = 0.02
"""The share of requests that may fail (section 2.2.1)."""
SCHEMES = {
    "frontage": "Frontage",
    "auspice": "Auspice's heuristic",
    "random-3": "Random-M",
    "replicate-all": "Replicate-All",
    "dht-any-hop": "DHT+Popularity, base 16, any hop",
    "dht-codons": "DHT+Popularity, base 16, near hops",
    "dht-en-route": "DHT+Popularity, base 4, near hops",
    "dht-closest": "DHT+Popularity, base 2, to the closest",
}
UPDATES = ("eventual", "eventual_everywhere", "ordered", "ordered_everywhere")
LOWEST = 0.3
RIVALS = ("random-3", "dht-any-hop", "dht-codons", "dht-en-route", "dht-closest", "frontage")
CAPACITIES = {2.0: "half", 0.5: "twice"}
"""A load counts by what a server can do, so a load of 1 with half the capacity is a load of 2."""
TICKS = (0.3, 1, 2, 4, 8)


def evaluate(rows: pl.DataFrame) -> Result:
    published = pl.read_csv(Path(__file__).with_name("published.csv"), comment_prefix="#").filter(pl.col("figure").is_in([2, 3]))
    told = dict(published.select("what", "value").iter_rows())
    of = summary(rows)
    held = of.filter(pl.col("failed") <= FAILED)
    at = {load: dict(frame.select("scheme", "lookup").iter_rows()) for (load,), frame in of.group_by("load")}
    lines: list[tuple[str, str, float | None, float | None]] = []
    for scheme, name in SCHEMES.items():
        highest = held.filter(pl.col("scheme") == scheme)["load"].max()
        lines.append((name, "highest load with 2 % failed at most", told.get(f"highest load of {scheme}"), _number(highest)))
    for scheme in RIVALS:
        lines.append(
            (
                SCHEMES[scheme],
                "lookups at load 1 by Auspice's heuristic",
                told.get(f"{scheme} by auspice"),
                at[1][scheme] / at[1]["auspice"],
            )
        )
    for scheme in RIVALS[:2]:
        for load, capacity in CAPACITIES.items():
            found = at[load][scheme] / at[load]["auspice"]
            lines.append((SCHEMES[scheme], f"the same with {capacity} the capacity, which is load {load:g}", None, found))
    lines.append((SCHEMES["replicate-all"], "lookups at load 0.3 (ms)", None, at[LOWEST]["replicate-all"]))
    lines += [(SCHEMES[scheme], "lookups at load 1 (ms)", None, at[1][scheme]) for scheme in ("frontage", "auspice", "random-3")]
    lowest = rows.filter((pl.col("load") == LOWEST) & (pl.col("scheme") == "auspice"))
    for what in UPDATES:
        name = what.replace("_", ", ")
        lines.append((SCHEMES["auspice"], f"update, {name} (ms), load 0.3", told.get(what), _median(lowest, what)))
    table = pl.DataFrame(lines, schema=["scheme", "what", "published", "ours"], orient="row")
    return Result(table, _plot(rows, of))


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """By scheme and load. Means over names, as the paper has them; what failed is of all requests."""
    requests = pl.col("reads") + pl.col("writes")
    lost = pl.col("lookup_failed") * pl.col("reads") + pl.col("update_failed") * pl.col("writes")
    return rows.group_by("scheme", "load", maintain_order=True).agg(
        (pl.col("lookup").mean() * 1e3).alias("lookup"),
        (pl.col("replicas") * pl.col("writes")).mean().alias("update cost"),
        pl.col("replicas").mean(),
        (lost.sum() / requests.sum()).alias("failed"),
    )


def _plot(rows: pl.DataFrame, of: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(9, 6))
    (first, second), (third, fourth) = figure.subplots(2, 2)
    for scheme, name in SCHEMES.items():
        lowest = rows.filter((pl.col("scheme") == scheme) & (pl.col("load") == LOWEST))["lookup"].sort() * 1e3
        first.plot(lowest, [(place + 1) / len(lowest) for place in range(len(lowest))], label=name, linewidth=1)
        here = of.filter(pl.col("scheme") == scheme).sort("load")
        well = here.filter(pl.col("failed") <= FAILED)
        second.plot(well["load"], well["lookup"], "o-", markersize=3, linewidth=1)
        third.plot(here["load"], here["update cost"], "o-", markersize=3, linewidth=1)
    first.set(xlabel="median lookup latency of a name (ms), load 0.3", ylabel="share of names", xlim=(0, 150))
    first.legend(fontsize=7)
    second.set(xlabel="load, as far as sustained", ylabel="lookup latency (ms)", xscale="log", ylim=(0, None))
    third.set(xlabel="load", ylabel="update cost of a name (1/s)", xscale="log", yscale="log")
    for axes in (second, third):
        axes.set_xticks(TICKS, [f"{load:g}" for load in TICKS])
        axes.minorticks_off()
    for what in UPDATES:
        values = rows.filter((pl.col("scheme") == "auspice") & (pl.col("load") == LOWEST))[what].sort() * 1e3
        fourth.plot(values, [(place + 1) / len(values) for place in range(len(values))], label=what.replace("_", ", "), linewidth=1)
    fourth.set(xlabel="update latency (ms), Auspice's heuristic, load 0.3", ylabel="share of names")
    fourth.legend(fontsize=7)
    return figure


def _median(rows: pl.DataFrame, what: str) -> float:
    return float(rows.select(pl.col(what).median() * 1e3).item())


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None

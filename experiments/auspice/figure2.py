# SPDX-License-Identifier: Apache-2.0
"""Lookup latency, update cost and update latency against load for each scheme, and the highest load that it sustains."""

from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result

MAX_FAILED = 0.02
"""Share of failed requests up to which a scheme sustains a load (section 2.2.1)."""
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
UPDATE_EVENTS = ("eventual", "eventual_everywhere", "ordered", "ordered_everywhere")
LOWEST = 0.3
RIVALS = ("random-3", "dht-any-hop", "dht-codons", "dht-en-route", "dht-closest", "frontage")
CAPACITIES = {2.0: "half", 0.5: "twice"}
"""Capacity that is equivalent to another load: a load of 1 with half the capacity is a load of 2 with all of it."""
TICKS = (0.3, 1, 2, 4, 8)


def evaluate(rows: pl.DataFrame) -> Result:
    published = pl.read_csv(Path(__file__).with_name("published.csv"), comment_prefix="#").filter(pl.col("figure").is_in([2, 3]))
    published_values = dict(published.select("what", "value").iter_rows())
    measured = summarize(rows)
    sustained = measured.filter(pl.col("failed") <= MAX_FAILED)
    at = {load: dict(frame.select("scheme", "lookup").iter_rows()) for (load,), frame in measured.group_by("load")}
    lines: list[tuple[str, str, float | None, float | None]] = []
    for scheme, name in SCHEMES.items():
        highest = sustained.filter(pl.col("scheme") == scheme)["load"].max()
        lines.append(
            (
                name,
                "highest load with at most 2 % failed requests",
                published_values.get(f"highest load of {scheme}"),
                _number(highest),
            )
        )
    for scheme in RIVALS:
        lines.append(
            (
                SCHEMES[scheme],
                "lookups at load 1 / Auspice's heuristic",
                published_values.get(f"{scheme} by auspice"),
                at[1][scheme] / at[1]["auspice"],
            )
        )
    for scheme in RIVALS[:2]:
        for load, capacity in CAPACITIES.items():
            ratio = at[load][scheme] / at[load]["auspice"]
            lines.append((SCHEMES[scheme], f"the same with {capacity} the capacity, which is load {load:g}", None, ratio))
    lines.append((SCHEMES["replicate-all"], "lookups at load 0.3 (ms)", None, at[LOWEST]["replicate-all"]))
    lines += [(SCHEMES[scheme], "lookups at load 1 (ms)", None, at[1][scheme]) for scheme in ("frontage", "auspice", "random-3")]
    lowest = rows.filter((pl.col("load") == LOWEST) & (pl.col("scheme") == "auspice"))
    for event in UPDATE_EVENTS:
        name = event.replace("_", ", ")
        lines.append((SCHEMES["auspice"], f"update, {name} (ms), load 0.3", published_values.get(event), _median(lowest, event)))
    table = pl.DataFrame(lines, schema=["scheme", "what", "published", "ours"], orient="row")
    return Result(table, _plot(rows, measured))


def summarize(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per scheme and load: means over names, as in the paper, and the share of failed requests."""
    requests = pl.col("reads") + pl.col("writes")
    failed = pl.col("lookup_failed") * pl.col("reads") + pl.col("update_failed") * pl.col("writes")
    return rows.group_by("scheme", "load", maintain_order=True).agg(
        (pl.col("lookup").mean() * 1e3).alias("lookup"),
        (pl.col("replicas") * pl.col("writes")).mean().alias("update cost"),
        pl.col("replicas").mean(),
        (failed.sum() / requests.sum()).alias("failed"),
    )


def _plot(rows: pl.DataFrame, measured: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(9, 6))
    (first, second), (third, fourth) = figure.subplots(2, 2)
    for scheme, name in SCHEMES.items():
        lowest = rows.filter((pl.col("scheme") == scheme) & (pl.col("load") == LOWEST))["lookup"].sort() * 1e3
        first.plot(lowest, [(rank + 1) / len(lowest) for rank in range(len(lowest))], label=name, linewidth=1)
        of_scheme = measured.filter(pl.col("scheme") == scheme).sort("load")
        sustained = of_scheme.filter(pl.col("failed") <= MAX_FAILED)
        second.plot(sustained["load"], sustained["lookup"], "o-", markersize=3, linewidth=1)
        third.plot(of_scheme["load"], of_scheme["update cost"], "o-", markersize=3, linewidth=1)
    first.set(xlabel="median lookup latency of a name (ms), load 0.3", ylabel="share of names", xlim=(0, 150))
    first.legend(fontsize=7)
    second.set(xlabel="sustained load", ylabel="lookup latency (ms)", xscale="log", ylim=(0, None))
    third.set(xlabel="load", ylabel="update cost of a name (1/s)", xscale="log", yscale="log")
    for axes in (second, third):
        axes.set_xticks(TICKS, [f"{load:g}" for load in TICKS])
        axes.minorticks_off()
    for event in UPDATE_EVENTS:
        values = rows.filter((pl.col("scheme") == "auspice") & (pl.col("load") == LOWEST))[event].sort() * 1e3
        fourth.plot(values, [(rank + 1) / len(values) for rank in range(len(values))], label=event.replace("_", ", "), linewidth=1)
    fourth.set(xlabel="update latency (ms), Auspice's heuristic, load 0.3", ylabel="share of names")
    fourth.legend(fontsize=7)
    return figure


def _median(rows: pl.DataFrame, event: str) -> float:
    return float(rows.select(pl.col(event).median() * 1e3).item())


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None

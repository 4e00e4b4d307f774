# SPDX-License-Identifier: Apache-2.0
"""Comparison of settings with a base setting on the same arrivals: a table, and a plot with a panel per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result
from frontage_sim.measures import COMPLETION, LONG_MEAN, MAX_SHORT, SHORT_MEAN, short_percentile
from frontage_sim.results import against, confidence, per_seed


def completion(flows: pl.DataFrame, by: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Return CloudCookie's measures of completion times for each seed, by name and unit."""
    return {f"{name} (ms)": per_seed(flows, by, value) for name, value in COMPLETION.items()}


def percentiles(flows: pl.DataFrame, by: Sequence[str], percents: Sequence[int]) -> dict[str, pl.DataFrame]:
    """Return percentiles of short flows and the mean of long ones for each seed, by name and unit."""
    names = {percent: "median" if percent == 50 else f"{percent}th percentile" for percent in percents}
    return {
        **{f"{name}, up to 100 kB (ms)": short_percentile(flows, by, percent) for percent, name in names.items()},
        "mean, above 1 MB (ms)": per_seed(flows, by, LONG_MEAN),
    }


def compare_completion(flows: pl.DataFrame, x: str, line: str, base: Mapping[str, str]) -> Result:
    """Compare CloudCookie's measures of settings with those of the setting ``base``, and show the number of short flows."""
    by = [line, x]
    each = {"mean, up to 100 kB (ms)": per_seed(flows, by, SHORT_MEAN), **percentiles(flows, by, (99,))}
    return with_short_flows(compare(each, x, line, base, log=True), flows, by)


def with_short_flows(result: Result, flows: pl.DataFrame, by: Sequence[str]) -> Result:
    """Return a result with the number of short flows, over all seeds, as the last column of its table."""
    short = flows.group_by(list(by), maintain_order=True).agg((pl.col("size") <= MAX_SHORT).sum().alias("short flows"))
    return Result(result.table.join(short, on=list(by), maintain_order="left"), result.plot)


def compare_percentiles(
    flows: pl.DataFrame, x: str, line: str, base: Mapping[str, str], percents: Sequence[int] = (50, 99)
) -> Result:
    """Compare `percentiles` of settings with the setting ``base``, and show the number of short flows."""
    by = [line, x]
    return with_short_flows(compare(percentiles(flows, by, percents), x, line, base, ordered=False, log=True), flows, by)


def compare(
    each: Mapping[str, pl.DataFrame], x: str, line: str, base: Mapping[str, str], *, ordered: bool = True, log: bool = False
) -> Result:
    """Compare settings with the setting ``base``.

    ``each`` maps names to measures from `per_seed` for ``x`` and ``line``. The table has the means, and the ratios to ``base`` with their
    95 % confidence intervals. Variation that all settings of a seed share does not widen these intervals. ``ordered`` connects the points
    of neighbouring ``x``. ``log`` makes the ratios' axis logarithmic.
    """
    by = [line, x]
    means = {name: confidence(values, by) for name, values in each.items()}
    ratios = {name: confidence(against(values, by, base), by) for name, values in each.items()}
    base_values = ", ".join(base.values())
    base_label = ", ".join(f"{field.rpartition('.')[2]} = {value}" for field, value in base.items())
    table = next(iter(means.values())).select(by)
    for name, frame in means.items():
        multiple = pl.format("{} ± {}", pl.col("mean").round(2), pl.col("half_width").round(2))
        columns = (
            frame.select(*by, pl.col("mean").alias(name)),
            ratios[name].select(*by, multiple.alias(f"{_short(name)}, ratio to {base_values}")),
        )
        for column in columns:
            table = table.join(column, on=by, maintain_order="left")
    return Result(table, _plot(ratios, x, line, base_label, ordered, log))


def _plot(ratios: Mapping[str, pl.DataFrame], x: str, line: str, base_label: str, ordered: bool, log: bool) -> Figure:
    figure = Figure(figsize=(9, 3))
    first = next(iter(ratios.values()))
    values, lines = (first[field].unique(maintain_order=True).to_list() for field in (x, line))
    for axes, (name, frame) in zip(figure.subplots(1, len(ratios), squeeze=False)[0], ratios.items(), strict=True):
        for number, label in enumerate(lines):
            rows = frame.filter(pl.col(line) == label).sort(pl.col(x).replace_strict(values, range(len(values))))
            positions = [values.index(value) + 0.08 * (number - (len(lines) - 1) / 2) for value in rows[x]]
            axes.errorbar(
                positions,
                rows["mean"],
                rows["half_width"],
                fmt="o-" if ordered else "o",
                markersize=3,
                capsize=2,
                linewidth=1,
                label=label,
            )
        if log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 1.5 * max(frame["mean"]))  # an interval may be wider: see the table
        axes.axhline(1, color="0.6", linewidth=0.8)
        axes.set_xticks(range(len(values)), values, rotation=25)
        axes.set_xlabel(x)
        axes.set_title(_short(name), fontsize=9)
    figure.supylabel(f"multiple of {base_label}", fontsize=8)
    axes.legend(title=line, fontsize=7, title_fontsize=7)
    return figure


def _short(name: str) -> str:
    """Return the name of a measure without its unit."""
    return name.partition(" (")[0]

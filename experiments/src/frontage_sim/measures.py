# SPDX-License-Identifier: Apache-2.0
"""Measures of flows that the papers use: completion times by size, and the balance of flows over servers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from frontage_sim.results import per_seed

MAX_SHORT = 100_000
"""Maximum size of a short flow in bytes (CloudCookie, V-A; AIFO, figure 9)."""
MIN_LONG = 1_000_000
"""Size in bytes above which a flow is long."""

FCT = (pl.col("end") - pl.col("start")) / 1e6
"""Flow completion time in milliseconds, from the first packet of the connection to the last byte."""

SHORT_MEAN = FCT.filter(pl.col("size") <= MAX_SHORT).mean()
SHORT_P99 = FCT.filter(pl.col("size") <= MAX_SHORT).quantile(0.99)
LONG_MEAN = FCT.filter(pl.col("size") > MIN_LONG).mean()
COMPLETION = {"mean, up to 100 kB": SHORT_MEAN, "99th percentile, up to 100 kB": SHORT_P99, "mean, above 1 MB": LONG_MEAN}
"""CloudCookie's measures of completion times, by name."""

MIN_BEYOND = 100
"""Number of flows that must take longer than a percentile, over all seeds, for the percentile to be meaningful."""


def short_percentile(flows: pl.DataFrame, by: Sequence[str], percent: int) -> pl.DataFrame:
    """Return a percentile of the completion times of short flows in milliseconds for each seed.

    Settings with fewer than `MIN_BEYOND` flows beyond the percentile are missing.
    """
    short = flows.filter(pl.col("size") <= MAX_SHORT)
    beyond = pl.len() * (100 - percent) >= 100 * MIN_BEYOND
    enough = short.group_by(list(by), maintain_order=True).agg(beyond.alias("enough")).filter(pl.col("enough")).select(by)
    values = per_seed(short, by, FCT.quantile(percent / 100))
    return values.join(enough, on=list(by), how="semi", maintain_order="left")


def active(flows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the number of active flows of each server at every start and end of a flow.

    Columns: ``time`` (ns), ``server``, ``change``, ``active``.
    """
    changes = pl.concat(
        [
            flows.select(*by, "server", time="start", change=pl.lit(1)),
            flows.select(*by, "server", time="end", change=pl.lit(-1)),
        ]
    )
    ordered = changes.sort([*by, "time", "change"])
    return ordered.with_columns(pl.col("change").cum_sum().over([*by, "server"]).alias("active"))


def variance(flows: pl.DataFrame, by: Sequence[str], servers: int) -> pl.DataFrame:
    """Return the variance of active flows over all servers at every start and end of a flow.

    Columns: ``time`` (ns), ``duration`` (ns), ``variance`` (flows squared).
    """
    changes = active(flows, by)
    # A change by d from n flows adds d to the sum and d * (2n + d) to the sum of squares. `active` is n + d.
    steps = changes.with_columns(squares=pl.col("change") * (2 * pl.col("active") - pl.col("change")))
    sums = steps.with_columns(
        total=_within(pl.col("change").cum_sum(), by),
        squared=_within(pl.col("squares").cum_sum(), by),
    )
    return sums.select(
        *by,
        "time",
        duration=(_within(pl.col("time").shift(-1), by) - pl.col("time")).fill_null(0),
        variance=pl.col("squared") / servers - (pl.col("total") / servers) ** 2,
    )


def shares(spread: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the distribution of `variance` over time: for each value in order, the ``share`` of time at or below it."""
    duration = pl.col("duration")
    ordered = spread.sort([*by, "variance"], maintain_order=True)
    return ordered.with_columns(share=_within(duration.cum_sum(), by) / _within(duration.sum(), by))


def summary(spread: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the mean, median, 90th and 99th percentile of `variance` over time."""
    value, duration = pl.col("variance"), pl.col("duration")
    quantiles = {"median": 0.5, "90 %": 0.9, "99 %": 0.99}
    return (
        shares(spread, by)
        .group_by(list(by), maintain_order=True)
        .agg(
            ((value * duration).sum() / duration.sum()).alias("mean"),
            *(value.filter(pl.col("share") >= share).first().alias(name) for name, share in quantiles.items()),
        )
    )


def _within(expression: pl.Expr, by: Sequence[str]) -> pl.Expr:
    """Apply an expression to each group, or to all rows without groups."""
    return expression.over(list(by)) if by else expression

# SPDX-License-Identifier: Apache-2.0
"""Measures of flows in papers: completion times by size, and how evenly flows are spread over servers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

SHORT = 100_000
"""Maximum size of a short flow in bytes (CloudCookie, V-A; AIFO, figure 9)."""
LONG = 1_000_000
"""Flows above this size in bytes are long."""

FCT = (pl.col("end") - pl.col("start")) / 1e6
"""Flow completion time in milliseconds, from the first packet of the connection to the last byte."""

SHORT_MEAN = FCT.filter(pl.col("size") <= SHORT).mean()
SHORT_P99 = FCT.filter(pl.col("size") <= SHORT).quantile(0.99)
LONG_MEAN = FCT.filter(pl.col("size") > LONG).mean()
COMPLETION = {"mean, to 100 kB": SHORT_MEAN, "99th percentile, to 100 kB": SHORT_P99, "mean, above 1 MB": LONG_MEAN}
"""CloudCookie's measures of completion times, by name."""


def active(flows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the number of flows of each server at every begin and end of a flow.

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
    """Return the variance of active flows over all servers at every begin and end of a flow.

    Columns: ``time`` (ns), ``lasts`` (ns), ``variance`` (flows squared).
    """
    changes = active(flows, by)
    # Each change updates the sum and the sum of squares: n to n + d adds d and d * (2n + d), where n + d is the count after it.
    moved = changes.with_columns(squares=pl.col("change") * (2 * pl.col("active") - pl.col("change")))
    sums = moved.with_columns(
        total=_within(pl.col("change").cum_sum(), by),
        squared=_within(pl.col("squares").cum_sum(), by),
    )
    return sums.select(
        *by,
        "time",
        lasts=(_within(pl.col("time").shift(-1), by) - pl.col("time")).fill_null(0),
        variance=pl.col("squared") / servers - (pl.col("total") / servers) ** 2,
    )


def shares(spread: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the distribution over time of `variance`'s result: for each value in order, the ``share`` of time at or below it."""
    lasts = pl.col("lasts")
    ordered = spread.sort([*by, "variance"], maintain_order=True)
    return ordered.with_columns(share=_within(lasts.cum_sum(), by) / _within(lasts.sum(), by))


def summary(spread: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return mean, median, 90th and 99th percentile over time of `variance`'s result."""
    at, lasts = pl.col("variance"), pl.col("lasts")
    quantiles = {"median": 0.5, "90 %": 0.9, "99 %": 0.99}
    return (
        shares(spread, by)
        .group_by(list(by), maintain_order=True)
        .agg(
            ((at * lasts).sum() / lasts.sum()).alias("mean"),
            *(at.filter(pl.col("share") >= share).first().alias(name) for name, share in quantiles.items()),
        )
    )


def _within(expression: pl.Expr, by: Sequence[str]) -> pl.Expr:
    """Apply an expression to each group, or to all rows without groups."""
    return expression.over(list(by)) if by else expression

# SPDX-License-Identifier: Apache-2.0
"""The results of a scenario's runs as data frames: one row per flow, with a column for each varied field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
from scipy import stats

from frontage_sim.grid import Run

Table = Literal["flows", "throughput"]

COLUMNS: dict[Table, dict[str, type[pl.DataType]]] = {
    "flows": {
        "id": pl.Int64,
        "label": pl.String,
        "client": pl.String,
        "server": pl.String,
        "size": pl.Int64,
        "start": pl.Int64,
        "end": pl.Int64,
        "retransmitted": pl.Int64,
        "timeouts": pl.Int64,
    },
    "throughput": {"time": pl.Int64, "flow": pl.Int64, "received": pl.Int64},
}
"""Columns of a run's CSV files, in bytes and nanoseconds of simulated time."""


def collect(runs: Sequence[Run], out: Path, table: Table = "flows") -> pl.DataFrame:
    """Return a table of all runs with their labels and seeds, and write it to ``flows.parquet`` or another file named after the table."""
    frames = [
        pl.read_csv(out / run.name / f"{table}.csv", schema=COLUMNS[table]).with_columns(
            *(pl.lit(value).alias(field) for field, value in run.labels.items()), pl.lit(run.seed).alias("seed")
        )
        for run in runs
    ]
    rows = pl.concat(frames)
    rows.write_parquet(out / f"{table}.parquet")
    return rows


def summaries(runs: Sequence[Run], out: Path) -> list[dict[str, Any]]:
    """Return the simulator's summary of each run: drops by reason, packets, run time."""
    return [json.loads((out / run.name / "summary.json").read_text()) for run in runs]


def over_seeds(frame: pl.DataFrame, by: Sequence[str], value: pl.Expr) -> pl.DataFrame:
    """Compute ``value`` for each seed, and return its mean over the seeds with half the 95 % confidence interval (Student's t)."""
    return confidence(per_seed(frame, by, value), by)


def per_seed(frame: pl.DataFrame, by: Sequence[str], value: pl.Expr) -> pl.DataFrame:
    """Return ``value`` for each seed."""
    return frame.group_by([*by, "seed"], maintain_order=True).agg(value.alias("value"))


def confidence(each: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the mean over the seeds, and half the width of its 95 % confidence interval (Student's t)."""
    over = each.group_by(list(by), maintain_order=True).agg(
        pl.col("value").mean().alias("mean"), pl.col("value").std().alias("deviation"), pl.len().alias("seeds")
    )
    half = [
        stats.t.ppf(0.975, row["seeds"] - 1) * row["deviation"] / row["seeds"] ** 0.5 if row["seeds"] > 1 else None
        for row in over.iter_rows(named=True)
    ]
    return over.drop("deviation").with_columns(pl.Series("half_width", half, dtype=pl.Float64))


def against(each: pl.DataFrame, by: Sequence[str], base: Mapping[str, str]) -> pl.DataFrame:
    """Return every value divided by the value of the setting ``base`` with the same seed, which has the same arrivals."""
    common = [field for field in (*by, "seed") if field not in base]
    is_base = pl.all_horizontal(pl.col(field) == value for field, value in base.items())
    base_values = each.filter(is_base).select(*common, pl.col("value").alias("base"))
    return each.join(base_values, on=common, maintain_order="left").with_columns(pl.col("value") / pl.col("base")).drop("base")

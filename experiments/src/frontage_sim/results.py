"""What the runs of a scenario found, as data frames: one row a flow, with a column for each field that the scenario varies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from scipy import stats

from frontage_sim.grid import Run

FLOWS = {
    "id": pl.Int64,
    "label": pl.String,
    "client": pl.String,
    "server": pl.String,
    "size": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "retransmitted": pl.Int64,
    "timeouts": pl.Int64,
}
"""Columns of ``flows.csv``: bytes, and nanoseconds of the simulated world."""


def collect(runs: Sequence[Run], out: Path) -> pl.DataFrame:
    """The flows of all runs, with labels and seed; written beside them as ``flows.parquet``."""
    frames = [
        pl.read_csv(out / run.name / "flows.csv", schema=FLOWS).with_columns(
            *(pl.lit(value).alias(field) for field, value in run.labels.items()), pl.lit(run.seed).alias("seed")
        )
        for run in runs
    ]
    whole = pl.concat(frames)
    whole.write_parquet(out / "flows.parquet")
    return whole


def summaries(runs: Sequence[Run], out: Path) -> list[dict[str, Any]]:
    """What the simulator says of each run as a whole: drops by reason, packets, time taken."""
    return [json.loads((out / run.name / "summary.json").read_text()) for run in runs]


def over_seeds(frame: pl.DataFrame, by: Sequence[str], value: pl.Expr) -> pl.DataFrame:
    """``value`` of each seed's rows, then over the seeds: mean, and half the width of its 95 % confidence interval (Student's t)."""
    each = frame.group_by([*by, "seed"], maintain_order=True).agg(value.alias("value"))
    over = each.group_by(list(by), maintain_order=True).agg(
        pl.col("value").mean().alias("mean"), pl.col("value").std().alias("deviation"), pl.len().alias("seeds")
    )
    half = [
        stats.t.ppf(0.975, row["seeds"] - 1) * row["deviation"] / row["seeds"] ** 0.5 if row["seeds"] > 1 else None
        for row in over.iter_rows(named=True)
    ]
    return over.drop("deviation").with_columns(pl.Series("half_width", half, dtype=pl.Float64))

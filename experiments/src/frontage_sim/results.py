"""What the runs of a scenario found, as data frames: one row a flow, with a column for each field that the scenario varies."""

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
"""Of a run's CSV files: bytes, and nanoseconds of the simulated world."""


def collect(runs: Sequence[Run], out: Path, table: Table = "flows") -> pl.DataFrame:
    """A table of all runs, with labels and seed; written beside them as ``flows.parquet``, or what it is called."""
    frames = [
        pl.read_csv(out / run.name / f"{table}.csv", schema=COLUMNS[table]).with_columns(
            *(pl.lit(value).alias(field) for field, value in run.labels.items()), pl.lit(run.seed).alias("seed")
        )
        for run in runs
    ]
    whole = pl.concat(frames)
    whole.write_parquet(out / f"{table}.parquet")
    return whole


def summaries(runs: Sequence[Run], out: Path) -> list[dict[str, Any]]:
    """What the simulator says of each run as a whole: drops by reason, packets, time taken."""
    return [json.loads((out / run.name / "summary.json").read_text()) for run in runs]


def over_seeds(frame: pl.DataFrame, by: Sequence[str], value: pl.Expr) -> pl.DataFrame:
    """``value`` of each seed's rows, then over the seeds: mean, and half the width of its 95 % confidence interval (Student's t)."""
    return confidence(per_seed(frame, by, value), by)


def per_seed(frame: pl.DataFrame, by: Sequence[str], value: pl.Expr) -> pl.DataFrame:
    """``value`` of each seed's rows, in the column of that name."""
    return frame.group_by([*by, "seed"], maintain_order=True).agg(value.alias("value"))


def confidence(each: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Over the seeds: mean, and half the width of its 95 % confidence interval (Student's t)."""
    over = each.group_by(list(by), maintain_order=True).agg(
        pl.col("value").mean().alias("mean"), pl.col("value").std().alias("deviation"), pl.len().alias("seeds")
    )
    half = [
        stats.t.ppf(0.975, row["seeds"] - 1) * row["deviation"] / row["seeds"] ** 0.5 if row["seeds"] > 1 else None
        for row in over.iter_rows(named=True)
    ]
    return over.drop("deviation").with_columns(pl.Series("half_width", half, dtype=pl.Float64))


def against(each: pl.DataFrame, by: Sequence[str], base: Mapping[str, str]) -> pl.DataFrame:
    """Every value as a multiple of the one that the same seed, and so the same arrivals, has with the fields as in ``base``."""
    same = [field for field in (*by, "seed") if field not in base]
    alike = pl.all_horizontal(pl.col(field) == value for field, value in base.items())
    held = each.filter(alike).select(*same, pl.col("value").alias("base"))
    return each.join(held, on=same, maintain_order="left").with_columns(pl.col("value") / pl.col("base")).drop("base")

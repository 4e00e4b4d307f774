# SPDX-License-Identifier: Apache-2.0
"""The results of a sweep as data frames, with a column for each varied field, and statistics over seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from scipy import stats

from frontage_sim.jobs import TIMING
from frontage_sim.plan import Plan
from frontage_sim.sweeping import INPUTS


@dataclass(frozen=True)
class Results:
    """The results of a finished sweep."""

    plan: Plan
    folder: Path

    def table(self, name: str | None = None) -> pl.DataFrame:
        """Return a table of all runs (default: the main one), and write it to a Parquet file with the table's name."""
        name = name or self.plan.table
        frames = [
            pl.read_parquet(self.folder / run / f"{name}.parquet").with_columns(
                pl.lit(value).alias(column) for column, value in labels.items()
            )
            for run, labels in self.plan.labels.items()
        ]
        rows = pl.concat(frames, rechunk=True)
        partial = self.folder / f"{name}.parquet.part"
        rows.write_parquet(partial)
        partial.rename(self.folder / f"{name}.parquet")
        return rows

    def summaries(self) -> list[dict[str, Any]]:
        """Return the simulator's summary of each run: drops by reason, packets, flows."""
        return [json.loads((self.folder / run / "summary.json").read_text()) for run in self.plan.labels]

    def core_seconds(self) -> dict[str, float]:
        """Return the CPU time of each run in seconds, by the run's digest: scenarios can share runs."""
        folders = [self.folder / run for run in self.plan.labels]
        return {(folder / INPUTS).read_text(): json.loads((folder / TIMING).read_text())["core_seconds"] for folder in folders}


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

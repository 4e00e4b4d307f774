# SPDX-License-Identifier: Apache-2.0
"""Completion times of short flows under AIFO and its rivals, relative to AIFO."""

import polars as pl

from frontage_sim.comparison import compare_percentiles
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare_percentiles(flows, "scheduler", "load", {"scheduler": "aifo"})

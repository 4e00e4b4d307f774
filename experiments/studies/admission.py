# SPDX-License-Identifier: Apache-2.0
"""Completion times with AIFO's parameters changed one at a time."""

import polars as pl

from frontage_sim.comparison import compare, completion
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare(
        completion(flows, ["workload.load", "parameters"]), "parameters", "workload.load", {"parameters": "shipped"}, ordered=False
    )

# SPDX-License-Identifier: Apache-2.0
"""Completion times by the number of RPT bits that AIFO reads."""

import polars as pl

from frontage_sim.comparison import compare, completion
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare(
        completion(flows, ["workload.load", "program.define.RPT_BITS"]),
        "program.define.RPT_BITS",
        "workload.load",
        {"program.define.RPT_BITS": "8"},
    )

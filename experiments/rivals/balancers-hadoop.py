# SPDX-License-Identifier: Apache-2.0
"""Completion times of a Hadoop cluster under CCLB4 and its rivals, relative to CCLB4."""

import polars as pl

from frontage_sim.comparison import compare_percentiles
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare_percentiles(flows, "balancer", "load", {"balancer": "cclb4"}, percents=(50, 90, 99))

# SPDX-License-Identifier: Apache-2.0
"""FCT of four variants of CCLB4 with AIFO, and their differences from the first."""

import polars as pl

from frontage_sim.figures import Result
from frontage_sim.variants import compare_variants


def evaluate(flows: pl.DataFrame) -> Result:
    return compare_variants(flows)

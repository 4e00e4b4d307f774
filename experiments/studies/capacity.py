# SPDX-License-Identifier: Apache-2.0
"""Balancers over servers of two rates, with weights that fit and that do not."""

import polars as pl

from frontage_sim.comparison import compare, completion
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare(
        completion(flows, ["weights", "balancer.policy"]),
        "balancer.policy",
        "weights",
        {"balancer.policy": "hash", "weights": "right"},
        ordered=False,
    )

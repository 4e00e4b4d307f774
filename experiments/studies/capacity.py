# SPDX-License-Identifier: Apache-2.0
"""Balancers with servers of two rates, with the right weights and with equal ones."""

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

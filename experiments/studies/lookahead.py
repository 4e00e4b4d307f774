# SPDX-License-Identifier: Apache-2.0
"""Completion times by look-ahead: the remaining bytes above which a flow counts in N_FF."""

import polars as pl

from frontage_sim.comparison import compare, completion
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare(
        completion(flows, ["balancer.alpha", "balancer.look_ahead"]),
        "balancer.look_ahead",
        "balancer.alpha",
        {"balancer.look_ahead": "64KiB"},
    )

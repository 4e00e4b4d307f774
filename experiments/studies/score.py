# SPDX-License-Identifier: Apache-2.0
"""Completion times by the weight of active against future flows, at several loads."""

import polars as pl

from frontage_sim.comparison import compare, completion
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare(
        completion(flows, ["workload.load", "balancer.alpha"]), "balancer.alpha", "workload.load", {"balancer.alpha": "0.5"}
    )

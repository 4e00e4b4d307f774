# SPDX-License-Identifier: Apache-2.0
"""FCT of four load balancers with AIFO against the rate of the servers' links, relative to CCLB4."""

import polars as pl

from frontage_sim.comparison import compare_completion
from frontage_sim.figures import Result


def evaluate(flows: pl.DataFrame) -> Result:
    return compare_completion(flows, "topology.server_share", "balancer.policy", {"balancer.policy": "cclb4"})

# SPDX-License-Identifier: Apache-2.0
"""Balance and completion times of flows against the number of L4 load balancers."""

import polars as pl

from frontage_sim.comparison import compare
from frontage_sim.figures import Result
from frontage_sim.measures import FCT, variance
from frontage_sim.results import per_seed

SERVERS = 16
MEAN_OVER_TIME = (pl.col("variance") * pl.col("duration")).sum() / pl.col("duration").sum()


def evaluate(flows: pl.DataFrame) -> Result:
    by = ["balancer", "topology.clients"]
    spread = variance(flows, [*by, "seed"], SERVERS)
    while_arriving = spread.join(flows.group_by(*by, "seed").agg(last=pl.col("start").max()), on=[*by, "seed"]).filter(
        pl.col("time") <= pl.col("last")
    )
    each = {
        "mean FCT (ms)": per_seed(flows, by, FCT.mean()),
        "99th percentile of FCT (ms)": per_seed(flows, by, FCT.quantile(0.99)),
        "variance of active flows": per_seed(while_arriving, by, MEAN_OVER_TIME),
    }
    return compare(each, "topology.clients", "balancer", {"balancer": "shipped"})

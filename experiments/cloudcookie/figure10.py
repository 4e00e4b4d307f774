# SPDX-License-Identifier: Apache-2.0
"""Distribution over time of the variance of active flows over the servers, while flows arrive."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result, distribution
from frontage_sim.measures import shares, summary, variance

BY = ["balancer.policy"]
SERVERS = 12


def evaluate(flows: pl.DataFrame) -> Result:
    spread = variance(flows, [*BY, "seed"], SERVERS).filter(pl.col("time") < flows["start"].max())
    return Result(summary(spread, BY), _plot(shares(spread, BY)))


def _plot(spread: pl.DataFrame) -> Figure:
    figure, axes = distribution()
    for (policy,), rows in spread.group_by(BY, maintain_order=True):
        axes.step(rows["variance"], rows["share"], where="post", label=policy)
    axes.legend(fontsize=7)
    return figure

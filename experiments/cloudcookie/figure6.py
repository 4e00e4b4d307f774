# SPDX-License-Identifier: Apache-2.0
"""Distribution over time of the variance of active flows over the servers, by number of L4 load balancers and source of the counts."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result, distribution
from frontage_sim.measures import shares, summary, variance

BY = ["topology.clients", "perspective"]
SERVERS = 16


def evaluate(flows: pl.DataFrame) -> Result:
    spread = variance(flows, [*BY, "seed"], SERVERS).filter(pl.col("time") < flows["start"].max())
    return Result(summary(spread, BY).rename({"topology.clients": "load balancers"}), _plot(shares(spread, BY)))


def _plot(spread: pl.DataFrame) -> Figure:
    figure, axes = distribution()
    numbers = spread["topology.clients"].unique().sort().to_list()
    for (number, perspective), rows in spread.group_by(BY, maintain_order=True):
        style = {"linestyle": "--" if perspective == "global" else "-", "color": f"C{numbers.index(number)}"}
        axes.step(rows["variance"], rows["share"], where="post", label=f"{number}, {perspective}", **style)
    axes.legend(fontsize=7, loc="lower right")
    return figure

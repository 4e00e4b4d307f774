# SPDX-License-Identifier: Apache-2.0
"""FCT of four load balancers, by what limits and with AIFO: the mean and the 99th percentile of short flows, the mean of long ones."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result, plus_minus
from frontage_sim.measures import COMPLETION
from frontage_sim.results import over_seeds

BY = ["limit", "balancer.policy"]


def evaluate(flows: pl.DataFrame) -> Result:
    found = {name: over_seeds(flows, BY, value) for name, value in COMPLETION.items()}
    return Result(plus_minus(found, BY, "ms"), _plot(found))


def _plot(found: dict[str, pl.DataFrame]) -> Figure:
    figure = Figure(figsize=(9, 3))
    for axes, (name, frame) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        policies = frame["balancer.policy"].unique(maintain_order=True).to_list()
        limits = frame["limit"].unique(maintain_order=True).to_list()
        for place, limit in enumerate(limits):
            rows = frame.filter(pl.col("limit") == limit)
            at = [policies.index(policy) + 0.27 * (place - 1) for policy in rows["balancer.policy"]]
            axes.bar(at, rows["mean"], 0.25, yerr=rows["half_width"], label=limit, capsize=2)
        axes.set_xticks(range(len(policies)), policies, rotation=25)
        axes.set_title(name, fontsize=9)
        axes.set_ylabel("FCT (ms)")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    figure.legend(*axes.get_legend_handles_labels(), title="what limits", loc="outside right upper", fontsize=7)
    return figure

# SPDX-License-Identifier: Apache-2.0
"""FCT of four load balancers with different bottlenecks, and with AIFO."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result, plus_minus
from frontage_sim.measures import COMPLETION
from frontage_sim.results import over_seeds

BY = ["limit", "balancer.policy"]


def evaluate(flows: pl.DataFrame) -> Result:
    measured = {name: over_seeds(flows, BY, value) for name, value in COMPLETION.items()}
    return Result(plus_minus(measured, BY, "ms"), _plot(measured))


def _plot(measured: dict[str, pl.DataFrame]) -> Figure:
    figure = Figure(figsize=(9, 3))
    for axes, (name, frame) in zip(figure.subplots(1, len(measured)), measured.items(), strict=True):
        policies = frame["balancer.policy"].unique(maintain_order=True).to_list()
        limits = frame["limit"].unique(maintain_order=True).to_list()
        for group, limit in enumerate(limits):
            rows = frame.filter(pl.col("limit") == limit)
            positions = [policies.index(policy) + 0.27 * (group - 1) for policy in rows["balancer.policy"]]
            axes.bar(positions, rows["mean"], 0.25, yerr=rows["half_width"], label=limit, capsize=2)
        axes.set_xticks(range(len(policies)), policies, rotation=25)
        axes.set_title(name, fontsize=9)
        axes.set_ylabel("FCT (ms)")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    figure.legend(*axes.get_legend_handles_labels(), title="what limits", loc="outside right upper", fontsize=7)
    return figure

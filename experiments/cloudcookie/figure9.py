# SPDX-License-Identifier: Apache-2.0
"""FCT of four load balancers against load, and the number of seeds in which they rank as in the paper."""

from itertools import pairwise

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result
from frontage_sim.measures import COMPLETION

RANKING = ["cclb4", "hash", "cheetah-rr", "cheetah-ll"]
"""The paper's ranking, the best policy first."""
MIN_LOAD = 0.6
"""Load from which the four policies differ in the paper."""


def evaluate(flows: pl.DataFrame) -> Result:
    flows = flows.with_columns(load=pl.col("workload.load").cast(pl.Float64), policy="balancer.policy")
    each = flows.group_by("load", "policy", "seed", maintain_order=True).agg(**COMPLETION)
    each = each.unpivot(index=["load", "policy", "seed"], variable_name="measure", value_name="fct")
    return Result(_table(each), _plot(each))


def _table(each: pl.DataFrame) -> pl.DataFrame:
    """Return means over the seeds, and the number of seeds in which each policy is better than the next."""
    by_seed = each.filter(pl.col("load") >= MIN_LOAD).pivot("policy", index=["measure", "load", "seed"], values="fct")
    orders = {f"{a} < {b}": pl.col(a) < pl.col(b) for a, b in pairwise(RANKING)}
    return by_seed.group_by("measure", "load", maintain_order=True).agg(
        *(pl.col(policy).mean().alias(f"{policy} (ms)") for policy in RANKING),
        *(order.sum().alias(name) for name, order in orders.items()),
        pl.all_horizontal(*orders.values()).sum().alias("all three"),
        pl.all_horizontal(*(pl.col("cclb4") < pl.col(rival) for rival in RANKING[1:])).sum().alias("cclb4 first"),
        pl.len().alias("of seeds"),
    )


def _plot(each: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(9, 3))
    for axes, measure in zip(figure.subplots(1, len(COMPLETION)), COMPLETION, strict=True):
        for policy in RANKING:
            shown = each.filter((pl.col("measure") == measure) & (pl.col("policy") == policy))
            fct = pl.col("fct")
            over = shown.group_by("load").agg(mean=fct.mean(), low=fct.quantile(0.25), high=fct.quantile(0.75)).sort("load")
            axes.plot(over["load"], over["mean"], marker="o", markersize=3, label=policy)
            axes.fill_between(over["load"], over["low"], over["high"], alpha=0.2)
        axes.set_title(measure, fontsize=9)
        axes.set_xlabel("load")
        axes.set_ylabel("FCT (ms)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    return figure

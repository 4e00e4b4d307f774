"""FCT of four load balancers, with and without AIFO: the mean and the 99th percentile of short flows, the mean of long ones."""

import polars as pl
from matplotlib.figure import Figure

from frontage_sim.figures import Result
from frontage_sim.measures import LONG_MEAN, SHORT_MEAN, SHORT_P99
from frontage_sim.results import over_seeds

MEASURES = {"mean, to 100 kB": SHORT_MEAN, "99th percentile, to 100 kB": SHORT_P99, "mean, above 1 MB": LONG_MEAN}
SCHEDULERS = {"fifo": "FIFO", "aifo": "AIFO"}


def evaluate(flows: pl.DataFrame) -> Result:
    by = ["scheduler.kind", "balancer.policy"]
    found = {name: over_seeds(flows, by, value) for name, value in MEASURES.items()}
    mean, half = pl.col("mean").round_sig_figs(3), pl.col("half_width").round_sig_figs(2)
    labels = next(iter(found.values())).select(by)
    table = labels.with_columns(
        *(frame.select(pl.format("{} ± {}", mean, half).alias(f"{name} (ms)")).to_series() for name, frame in found.items())
    )
    return Result(table, _plot(found))


def _plot(found: dict[str, pl.DataFrame]) -> Figure:
    figure = Figure(figsize=(9, 3))
    for axes, (name, frame) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        policies = frame["balancer.policy"].unique(maintain_order=True).to_list()
        for place, (kind, label) in enumerate(SCHEDULERS.items()):
            rows = frame.filter(pl.col("scheduler.kind") == kind)
            at = [policies.index(policy) + 0.38 * (place - 0.5) for policy in rows["balancer.policy"]]
            axes.bar(at, rows["mean"], 0.36, yerr=rows["half_width"], label=label, capsize=2)
        axes.set_xticks(range(len(policies)), policies, rotation=25)
        axes.set_title(name, fontsize=9)
        axes.set_ylabel("FCT (ms)")
    axes.legend()
    return figure

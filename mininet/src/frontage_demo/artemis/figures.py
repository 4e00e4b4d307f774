# SPDX-License-Identifier: Apache-2.0
"""Figures 12 and 13 of the paper, with our results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frontage_testbed.reporting.style import set_style

from .measure import Sample
from .results import Result, mean
from .tables import METHODS

set_style()
COLOURS = {"artemis": "tab:blue", "dns": "tab:orange", "anycast": "tab:green"}


SIMULATED = {
    "setup": {"artemis": 17.25, "dns": 27.32, "anycast": 16.86},
    "query": {"artemis": 31.65, "dns": 41.72, "anycast": 33.72},
}
"""Means of the published figure in ms (section 5.2.2); anycast's set-up is that of Artemis less 0.39."""


def figure12(result: Result, file: Path) -> None:
    """Plot the distributions of set-up and query latency in one scenario."""
    figure = Figure(figsize=(7, 3))
    for axes, what, title in zip(figure.subplots(1, 2), ("setup", "query"), ("connection set-up", "query"), strict=True):
        for method, name in METHODS.items():
            if times := sorted(getattr(sample, what) for sample in result.by(method)):
                shares = [(number + 1) / len(times) for number in range(len(times))]
                axes.step(times, shares, where="post", label=name, color=COLOURS[method])
                axes.axvline(SIMULATED[what][method], color=COLOURS[method], linestyle=":", linewidth=1)
        axes.set_xscale("log")
        axes.set_xlabel(f"{title} latency (ms)")
        axes.set_ylabel("share of connections")
        axes.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


def figure13(results: Sequence[Result], file: Path) -> None:
    """Plot each client's mean query latency with its set-up shaded, then the mean of all and the published one."""
    figure = Figure(figsize=(8, 2.4 * len(results)))
    for axes, result in zip(figure.subplots(len(results), 1, squeeze=False)[:, 0], results, strict=True):
        _bars(axes, result)
    figure.savefig(file, metadata={"Date": None})


def _bars(axes: Axes, result: Result) -> None:
    clients, published = list(result.scenario.clients), result.scenario.published
    positions = [*range(len(clients)), len(clients) + 0.5, len(clients) + 1.5]
    for offset, (method, name) in enumerate(METHODS.items()):
        samples = result.by(method)
        if not samples:
            continue
        at = [position + 0.27 * (offset - 1) for position in positions]
        means = [
            *(_means([s for s in samples if s.client == client]) for client in clients),
            _means(samples),
            (published.setup[offset], published.query[offset]),
        ]
        axes.bar(at, [query for _, query in means], 0.25, color=COLOURS[method], alpha=0.45, label=name)
        axes.bar(at, [setup for setup, _ in means], 0.25, color=COLOURS[method])
    axes.set_xticks(positions, [*clients, "all", "all, published"], rotation=45, ha="right")
    axes.set_ylabel("ms")
    axes.set_title(result.scenario.title, loc="left")
    axes.legend(frameon=False, ncols=3)


def _means(samples: Sequence[Sample]) -> tuple[float, float]:
    """Return the means of set-up and query latency."""
    return mean(s.setup for s in samples), mean(s.query for s in samples)

# SPDX-License-Identifier: Apache-2.0
"""Reproduces published figures. Each figure has a scenario, a module that evaluates the runs, and a text. A folder makes one page.

For the scenario ``figure8.yaml``, ``evaluate(flows)`` in ``figure8.py`` returns a `Result`, and ``figure8.md`` explains it. A module that
defines ``TABLE`` gets that table instead of the flows.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frontage_sim.results import Results
from frontage_testbed.reporting.style import set_style

set_style()


@dataclass(frozen=True)
class Result:
    """The content of a figure: a table of measured and published numbers, and the plot."""

    table: pl.DataFrame
    plot: Figure


def plus_minus(measures: Mapping[str, pl.DataFrame], by: Sequence[str], unit: str) -> pl.DataFrame:
    """Return one table with the means of all `measures` (from `over_seeds`, by name) and half the width of their confidence intervals."""
    mean, half = pl.col("mean").round_sig_figs(3), pl.col("half_width").round_sig_figs(2)
    columns = [frame.select(pl.format("{} ± {}", mean, half).alias(f"{name} ({unit})")) for name, frame in measures.items()]
    return pl.concat([next(iter(measures.values())).select(by), *columns], how="horizontal")


def distribution() -> tuple[Figure, Axes]:
    """Return an empty plot for the distribution of the variance of active flows."""
    figure = Figure(figsize=(5, 3))
    axes: Axes = figure.subplots()
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel("variance of active flows over the servers")
    axes.set_ylabel("share of time")
    return figure, axes


def scenarios(paper: Path) -> list[Path]:
    """Return the scenario files of a paper's folder, by the number of the figure, and then by the length of the name."""

    def order(file: Path) -> tuple[int, int, str]:
        number = re.match(r"figure(\d+)", file.stem)
        return int(number[1]) if number else 0, len(file.stem), file.stem

    return sorted(paper.glob("*.yaml"), key=order)


def page(paper: Path, out: Path, sweep: Callable[[Path], Results]) -> Path:
    """Sweep every scenario of a paper's folder, write ``out/PAPER.md`` and its plots, and return the page's path."""
    text = [(paper / "README.md").read_text().rstrip()]
    for file in scenarios(paper):
        module = _module(file.with_suffix(".py"))
        results = sweep(file)
        title = results.plan.title
        result: Result = module.evaluate(results.table(getattr(module, "TABLE", None)))
        plot = out / paper.name / f"{file.stem}.svg"
        plot.parent.mkdir(parents=True, exist_ok=True)
        result.plot.savefig(plot, metadata={"Date": None})
        text += [
            f"## {title}",
            f"![{title}]({paper.name}/{plot.name})",
            "\n".join(_table(result.table)),
            file.with_suffix(".md").read_text().rstrip(),
            f"To run it: `frontage-sim sweep experiments/{paper.name}/{file.name}`; the file contains all settings.",
        ]
    target = out / f"{paper.name}.md"
    target.write_text("\n\n".join(text) + "\n")
    return target


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _table(frame: pl.DataFrame) -> Iterator[str]:
    yield "| " + " | ".join(frame.columns) + " |"
    yield "|" + "|".join("---:" if dtype.is_numeric() else "---" for dtype in frame.dtypes) + "|"
    for row in frame.iter_rows():
        yield "| " + " | ".join(_cell(value) for value in row) + " |"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)

# SPDX-License-Identifier: Apache-2.0
"""Line plots of pages in docs/results, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from .plots import Axis, Line
from .style import set_style

mpl.use("Agg")

import matplotlib.pyplot as plt

SIZE = (6.4, 3.6)
"""Inches."""


def save(path: Path, title: str, x: Axis, y: Axis, lines: Sequence[Line], colours: Sequence[str]) -> None:
    """Write a plot of `lines` as SVG. A line has the colour with the number of its style."""
    set_style()
    figure, axes = plt.subplots(figsize=SIZE)
    for line in lines:
        axes.plot(
            [a for a, _ in line.points],
            [b for _, b in line.points],
            label=line.label,
            color=colours[line.style],
            linestyle="--" if line.dashed else "-",
            drawstyle="steps-post" if line.step else "default",
        )
    axes.set(title=title, xlabel=x.label, ylabel=y.label, xlim=(x.low, x.high), ylim=(y.low, y.high))
    for axis, scale in ((x, axes.set_xscale), (y, axes.set_yscale)):
        if axis.logarithmic:
            scale("log")
    axes.legend()
    # A fixed salt and no date: the same data give the same file.
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)

"""How matplotlib's plots in docs/results look."""

from __future__ import annotations

import matplotlib as mpl


def set_style() -> None:
    """Of all plots that are drawn from now on."""
    mpl.rcParams.update(
        {
            "svg.hashsalt": "frontage",  # else the same plot is another file each time
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "figure.constrained_layout.use": True,
        }
    )

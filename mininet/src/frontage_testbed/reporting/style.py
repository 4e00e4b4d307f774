# SPDX-License-Identifier: Apache-2.0
"""The style of matplotlib's plots in docs/results."""

from __future__ import annotations

import matplotlib as mpl


def set_style() -> None:
    """Set the style of all plots drawn from now on."""
    mpl.rcParams.update(
        {
            "svg.hashsalt": "frontage",  # fixed ids: the same plot gives the same file
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "figure.constrained_layout.use": True,
        }
    )

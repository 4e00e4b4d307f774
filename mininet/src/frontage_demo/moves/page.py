# SPDX-License-Identifier: Apache-2.0
"""The results in docs/moves.md, and their plot."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from frontage_testbed.reporting.figures import save
from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.plots import Axis, Line, cdf_points

from .measure import CONNECTIONS, ORDERS, SIZE, Moves

BEGIN, END = "<!-- moves: written by make moves -->", "<!-- end of moves -->"
PLOT = Path("moves") / "left.svg"
"""The plot, below the documentation."""
COLOURS = ("#0550ae",)


def markdown(moves: Moves) -> str:
    """Return the results and their conditions."""
    rows = [
        ("completed moves", str(moves.completed)),
        ("failed moves and hand-overs", str(moves.failed)),
        ("requests", f"{moves.requests:,}"),
        ("failed requests", str(sum(moves.failures.values()))),
        ("order to last packet at the old address, median", f"{statistics.median(moves.delays) * 1000:.0f} ms"),
        ("order to last packet at the old address, maximum", f"{max(moves.delays) * 1000:.0f} ms"),
        ("connections handed over from the draining server", str(moves.handed_over)),
        ("hand-over order until the last client has left", f"{moves.drained:.1f} s"),
    ]
    return "\n".join(
        [
            f"Two servers are behind softswitch. {CONNECTIONS} connections request {SIZE:,} bytes again and again.",
            f"{ORDERS} orders move all of them between the VIP and the cookie addresses.",
            "Then one server drains and hands its clients over to the other.",
            "",
            table(("", "measured"), rows).rstrip("\n"),
            "",
            f"![Connections that have left the old address, by the time since the order]({PLOT})",
            "",
        ]
    )


def plot(moves: Moves, docs: Path) -> None:
    """Write the distribution of the times."""
    limit = math.ceil(max(moves.delays) * 10) / 10
    lines = [Line("last packet at the old address", 0, [(0.0, 0.0), *cdf_points(moves.delays)], step=True)]
    axes = Axis("seconds since the order", 0, limit), Axis("share of connections", 0, 1)
    (docs / PLOT).parent.mkdir(exist_ok=True)
    save(docs / PLOT, "Moves to another address", *axes, lines, COLOURS)


def write(text: str, page: Path) -> None:
    """Replace the results in a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}")

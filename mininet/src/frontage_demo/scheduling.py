# SPDX-License-Identifier: Apache-2.0
"""The results of AIFO: a section of the report, and the table at the end of the terminal's output."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from frontage.config.network import Scheduler
from frontage_testbed.datacentre.configuration import scheduler_of
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.load.workload import Arrival
from frontage_testbed.reporting.plots import Axis, Line, cdf_points, legend, plot

from .metrics import PolicyRun, short_fcts
from .tables import counted, counts_table


def section(settings: Settings, plan: Sequence[Arrival], runs: Sequence[PolicyRun]) -> str:
    """Return the section as HTML; empty if every queue was FIFO."""
    if "aifo" not in settings.schedulers:
        return ""
    aifo = Scheduler.model_validate(scheduler_of("aifo", settings.bottleneck_packets))
    refused = counts_table({r.name: r.refusals for r in runs if r.treatment.scheduler == "aifo"}, order=int)
    return (
        "<h2>The bottleneck's queue: FIFO and AIFO</h2><p>Every policy got the same arrivals twice, with the same queue of "
        f"{aifo.capacity} packets in the edge switch. FIFO drops packets when the queue is full. AIFO (SIGCOMM 2021) drops a packet if the remaining time of its "
        "flow is too long for the current queue length; the servers' cookies carry this time (RPT). This keeps room for flows that are nearly finished. AIFO "
        f"compares with a window of {aifo.window} ranks, samples one packet in {aifo.sample}, and uses k = {aifo.k:g}; packets without a cookie have rank 0.</p>"
        f"{_plots(plan, runs)}"
        "<h3>Packets that AIFO dropped, by remaining time</h3><p>A column's head is the smallest remaining processing time of its packets, in microseconds at "
        f"{settings.server_rate / 1e6:g} Mbit/s, the rate of a server's link; the column ends where the next one begins. Shortest first means zeros on the left. "
        f"<em>Drops by reason</em> below counts tail drops of the full queue.</p>{refused or '<p>AIFO dropped no packets.</p>'}"
    )


def _plots(plan: Sequence[Arrival], runs: Sequence[PolicyRun]) -> str:
    """Return plots of the short flows' completion times for each policy with both schedulers, at the same scale."""
    fcts = [(r.treatment, [f * 1e3 for f in short_fcts(plan, r.outcomes)]) for r in runs]
    everything = [v for _, vs in fcts for v in vs]
    if not everything:
        return ""
    x, y = (
        Axis("FCT (ms)", min(everything) * 0.9, max(everything) * 1.1, logarithmic=True),
        Axis("share of flows", 0, 1),
    )
    cells, key = [], ""
    for policy in dict.fromkeys(t.policy for t, _ in fcts):
        lines = [
            Line(t.scheduler, 1 if t.scheduler == "fifo" else 3, cdf_points(v), step=True)
            for t, v in fcts
            if t.policy == policy and v
        ]
        key = legend(lines)
        cells.append(f"<div><h3>{policy}</h3>{plot(f'Flows up to 100 KB under {policy}', x, y, lines, 400, 220)}</div>")
    return f'<h3>Flows up to 100 KB</h3>{key}<div class="small">{"".join(cells)}</div>'


def refusal_table(runs: Sequence[PolicyRun]) -> Table | None:
    """Return the terminal's table: tail drops, and AIFO's drops by band of remaining time. None if AIFO never ran."""
    refusals = {r.name: r.refusals for r in runs if r.treatment.scheduler == "aifo"}
    if not refusals:
        return None
    table = Table(title="dropped packets: queue full; by AIFO, by remaining time (us)", title_justify="left")
    bands = counted(refusals, order=int)
    for column in ("policy", "full", *(f"{least}+" for least in bands)):
        table.add_column(column, justify="left" if column == "policy" else "right", no_wrap=True)
    for run in runs:
        row = refusals.get(run.name)
        cells = [""] * len(bands) if row is None else [str(row.get(least, 0)) for least in bands]
        table.add_row(run.name, str(run.drops.get("tail-drop", 0)), *cells)
    return table

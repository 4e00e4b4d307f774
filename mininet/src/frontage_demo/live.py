# SPDX-License-Identifier: Apache-2.0
"""The table that the demo shows while it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .metrics import Summary

PLAIN_INTERVAL = 5.0
"""Seconds between progress lines when the output is not a terminal."""


class LiveTable:
    """A row for each run, and the servers' current active flows.

    Without a terminal it prints a line now and then, and the table at the end.
    """

    def __init__(self, runs: Sequence[str], seconds: float, console: Console | None = None) -> None:
        self._console = console or Console()
        self._seconds = seconds
        self._rows: dict[str, tuple[str, Summary | None, int]] = dict.fromkeys(runs, ("waiting", None, 0))
        self._servers: dict[str, int] = {}
        self._live = Live(self._render(), console=self._console, auto_refresh=False, transient=True)
        self._next_plain = 0.0

    def __enter__(self) -> LiveTable:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()
        self._console.print(self._table())

    def note(self, text: str) -> None:
        """Print a line of progress above the table."""
        self._console.print(text, highlight=False)

    def update(self, run: str, elapsed: float, summary: Summary, finished: int, servers: dict[str, int]) -> None:
        """Show the progress of a run."""
        state = f"{max(0.0, elapsed):.0f} s" if elapsed < self._seconds else "draining"
        self._rows[run] = (state, summary, finished)
        self._servers = servers
        if self._console.is_terminal:
            self._live.update(self._render(), refresh=True)
        elif time.monotonic() >= self._next_plain:
            self._next_plain = time.monotonic() + PLAIN_INTERVAL
            self.note(f"  {run}: {state}, {finished} of {summary.requests} requests finished")

    def finished(self, run: str, summary: Summary) -> None:
        """Mark a run as finished."""
        self._rows[run] = ("done", summary, summary.requests)
        self._servers = {}
        if self._console.is_terminal:
            self._live.update(self._render(), refresh=True)
        else:
            self.note(f"  {run}: done, {summary.requests} requests, {summary.failures} failed")

    def _render(self) -> Group:
        bars = Text()
        most = max(self._servers.values(), default=0)
        for server, count in self._servers.items():
            bars.append(f"{server:>4} ", style="dim")
            bars.append("█" * (count if most <= 50 else round(50 * count / most)), style="cyan")
            bars.append(f" {count}\n")
        return Group(self._table(), bars)

    def _table(self) -> Table:
        table = Table(title="requests and flow completion times (ms) by policy", title_justify="left")
        table.add_column("policy", no_wrap=True)
        for column in ("", "finished", "failed", "≤100 KB mean", "≤100 KB p99", ">1 MB mean", "variance", "retransmitted"):
            table.add_column(column, justify="right", no_wrap=True)
        for run, (state, summary, finished) in self._rows.items():
            if summary is None:
                table.add_row(run, state, style="dim")
                continue
            failed = f"[red]{summary.failures}[/red]" if summary.failures and state == "done" else ""
            table.add_row(
                run,
                state,
                f"{finished}/{summary.requests}",
                failed or ("0" if state == "done" else ""),
                _milliseconds(summary.short_mean, 2),
                _milliseconds(summary.short_p99, 1),
                _milliseconds(summary.long_mean, 0),
                "" if summary.variance is None else f"{summary.variance:.2f}",
                "" if summary.retransmitted is None else f"{summary.retransmitted}",
            )
        return table


def _milliseconds(seconds: float | None, digits: int) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.{digits}f}"

# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/artemis.md and prints the same tables to the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frontage_testbed.reporting.templates import PageTemplate, join

from . import tables
from .events import Try
from .failover import Failover
from .figures import figure12, figure13
from .results import Result

Clients = Mapping[str, Mapping[str, Any]]

TABLES = {
    "latencies": ("Table 5: mean latency (ms)", tables.latencies),
    "reductions": ("Latency reduction by Artemis", tables.reductions),
    "rivals": ("Beside regional anycast", tables.rivals),
    "routing": ("Table 6: anycast's routes", tables.routing),
    "redundancy": ("Table 7: first site to answer under redundant routing", tables.redundancy),
    "resolution": ("Name resolution", tables.resolution),
}
"""Titles and functions of the tables, by section of the template."""
EVENTS = "Redundancy under packet loss and site failure"
FAILOVER = "Computed mapping: a new client, a failed site"
MEASURED = "Round-trip times of the client's network in the store (samples)"
CLIENTS = "Unmodified clients"


def terminal(results: Sequence[Result], tries: Sequence[Try], seen: Failover | None, clients: Clients) -> str:
    """Return all tables that have rows, for a terminal."""
    made = {title: make(results) for title, make in TABLES.values()} | {EVENTS: tables.events(tries)}
    if seen is not None:
        made |= {FAILOVER: tables.failover(seen), MEASURED: tables.measured(seen)}
    made[CLIENTS] = tables.clients(clients)
    return "\n\n".join(f"{title}\n{tables.plain(table)}" for title, table in made.items() if table[1])


def write(results: Sequence[Result], tries: Sequence[Try], seen: Failover | None, clients: Clients, directory: Path) -> Path:
    """Write `artemis.md`, and its figures into `artemis/`, and return the page's path."""
    plots = directory / "artemis"
    plots.mkdir(parents=True, exist_ok=True)
    figure13(results, plots / "figure13.svg")
    template = PageTemplate("artemis")
    parts = [template.section("introduction")]
    for section, (_, make) in TABLES.items():
        table = make(results)
        if table[1]:
            parts.append(template.section(section, table=tables.markdown(table)))
    for result in results:
        if result.name == "global-large":
            figure12(result, plots / "figure12.svg")
            parts.append(template.section("figure-12"))
    if tries:
        parts.append(template.section("events", table=tables.markdown(tables.events(tries))))
    if seen is not None:
        computed, measured = tables.markdown(tables.failover(seen)), tables.markdown(tables.measured(seen))
        parts.append(template.section("failover", table=computed, measured=measured))
    if clients:
        parts.append(template.section("clients", table=tables.markdown(tables.clients(clients))))
    parts.append(template.section("run", table=tables.markdown(tables.runs(results))))
    page = directory / "artemis.md"
    page.write_text(join(parts))
    return page

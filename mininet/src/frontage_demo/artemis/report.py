"""The page of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import tables
from .events import Try
from .figures import figure12, figure13
from .results import Result

TITLES = {
    "Table 5: mean latency (ms)": tables.latencies,
    "By how much Artemis is below": tables.reductions,
    "Table 6: anycast's routes": tables.routing,
    "Table 7: who answers under redundancy routing": tables.redundancy,
    "Name resolution": tables.resolution,
}


def terminal(results: Sequence[Result], tries: Sequence[Try]) -> str:
    """All tables, for a terminal."""
    made = {title: make(results) for title, make in TITLES.items()} | {EVENTS: tables.events(tries)}
    return "\n\n".join(f"{title}\n{tables.plain(table)}" for title, table in made.items() if table[1])


def write(results: Sequence[Result], tries: Sequence[Try], directory: Path) -> Path:
    """Write `artemis.md`, and its figures into `artemis/`, and return the page's path."""
    plots = directory / "artemis"
    plots.mkdir(parents=True, exist_ok=True)
    figure13(results, plots / "figure13.svg")
    parts = [HEAD]
    for title, make in TITLES.items():
        table = make(results)
        if not table[1]:
            continue
        parts.append(f"## {title}\n\n{tables.markdown(table)}")
        if make is tables.latencies:
            parts.append("![Figure 13: set-up (dark) and query latency of every client](artemis/figure13.svg)")
    large = [result for result in results if result.name == "global-large"]
    for result in large:
        figure12(result, plots / "figure12.svg")
        parts.append("## Figure 12\n\n![Figure 12: distributions in the global world](artemis/figure12.svg)")
    if tries:
        parts.append(f"## {EVENTS}\n\n{tables.markdown(tables.events(tries))}\n\n{EVENTS_TEXT}")
    parts.append(_run(results))
    page = directory / "artemis.md"
    page.write_text("\n\n".join(parts) + "\n")
    return page


EVENTS = "Redundancy: a lost packet, a dead site"
EVENTS_TEXT = """\
A client in Sweden, whom anycast leads to Ohio, of a service in Frankfurt, Paris and Ohio. Set-up more than 900 ms above the fastest one's means that the first flight was sent again (after a second, RFC 9002, section 6.2.2)."""

HEAD = """\
# Artemis, measured

*Artemis: A Latency-Oriented Naming and Routing System* (TPDS 2022), section 5, over our own switches, dispatchers and replicas, with real QUIC clients and
real name servers. Distances are a published latency matrix; [`artemis.md`](../artemis.md) says what stands where. `make artemis` writes this page."""


def _run(results: Sequence[Result]) -> str:
    lines = ["## The run", ""]
    for result in results:
        steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in result.startup.items())
        lines.append(
            f"- {result.scenario.title}: {len(result.scenario.sites)} sites, {len(result.scenario.clients)} clients, "
            f"{result.rounds} connections of each client by each way, seed {result.seed}; up after {steps}."
        )
    return "\n".join(lines)

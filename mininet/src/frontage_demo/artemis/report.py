"""The page of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import tables
from .events import Try
from .failover import Failover
from .figures import figure12, figure13
from .results import Result

Clients = Mapping[str, Mapping[str, Any]]

TITLES = {
    "Table 5: mean latency (ms)": tables.latencies,
    "By how much Artemis is below": tables.reductions,
    "Table 6: anycast's routes": tables.routing,
    "Table 7: who answers under redundancy routing": tables.redundancy,
    "Name resolution": tables.resolution,
}


def terminal(results: Sequence[Result], tries: Sequence[Try], seen: Failover | None, clients: Clients) -> str:
    """All tables, for a terminal."""
    made = {title: make(results) for title, make in TITLES.items()} | {EVENTS: tables.events(tries)}
    if seen is not None:
        made |= {FAILOVER: tables.failover(seen), MEASURED: tables.measured(seen)}
    made[CLIENTS] = tables.clients(clients)
    return "\n\n".join(f"{title}\n{tables.plain(table)}" for title, table in made.items() if table[1])


def write(results: Sequence[Result], tries: Sequence[Try], seen: Failover | None, clients: Clients, directory: Path) -> Path:
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
            parts.append(LATENCIES_TEXT)
            parts.append("![Figure 13: set-up (dark) and query latency of every client](artemis/figure13.svg)")
        elif make is tables.redundancy:
            parts.append(REDUNDANCY_TEXT)
    large = [result for result in results if result.name == "global-large"]
    for result in large:
        figure12(result, plots / "figure12.svg")
        parts.append(f"## Figure 12\n\n{FIGURE12_TEXT}")
        parts.append("![Figure 12: distributions in the global testbed](artemis/figure12.svg)")
    if tries:
        parts.append(f"## {EVENTS}\n\n{tables.markdown(tables.events(tries))}\n\n{EVENTS_TEXT}")
    if seen is not None:
        parts.append(f"## {FAILOVER}\n\n{tables.markdown(tables.failover(seen))}")
        parts.append(f"{MEASURED}:\n\n{tables.markdown(tables.measured(seen))}\n\n{FAILOVER_TEXT}")
    if clients:
        parts.append(f"## {CLIENTS}\n\n{tables.markdown(tables.clients(clients))}\n\n{CLIENTS_TEXT}")
    parts.append(_run(results))
    page = directory / "artemis.md"
    page.write_text("\n\n".join(parts) + "\n")
    return page


LATENCIES_TEXT = """\
*By distances* is what the matrix alone gives: the same ways, if switches, servers, resolvers and clients took no time. What is above it is this machine's work, for all three ways.

Where anycast leads elsewhere, a first flight goes by there to the best site, whose answer comes straight; what the client sends then goes straight, too (section 3.5). *Global Small* is where that pays most, in the paper as here: anycast leads far away, Artemis' set-up is as
long as anycast's, and its query is not. DNS is faster there: a name costs less than the detour. In the regional deployments the distances differ from the published ones: clients and sites are of one cloud, and some are in the same region."""
REDUNDANCY_TEXT = """\
The first answer wins. A copy that goes to a site on the way from where anycast led may be answered sooner than the one to the best site, whose way is longer: then the client has a shorter set-up, and a longer way from then on. The paper saw that at X = 3 and 4 only."""
FIGURE12_TEXT = """\
The paper's is a simulation over latencies of 500 RIPE Atlas probes (section 5.2), ours is the global testbed. Dotted: its means."""
EVENTS = "Redundancy: a lost packet, a dead site"
EVENTS_TEXT = """\
A client in Sweden, whom anycast leads to Ohio, of a service in Frankfurt, Milan and Ohio. Set-up more than 900 ms above the fastest one's means that the first flight was sent again (after a second, RFC 9002, section 6.2.2)."""
FAILOVER = "The mapping computed: a client that is new, a site that dies"
MEASURED = "Round trips of the client's network, as the store has them (samples)"
FAILOVER_TEXT = """\
The same client and sites; no mapping is written. Replicas tell dispatchers the round trips of handshakes, dispatchers ping networks of which other sites have news, and the sites' controllers, which share a store, compute from both ([mapping](../mapping.md)). The best site dies with its
dispatcher and its controller."""
CLIENTS = "Clients as they are"
CLIENTS_TEXT = """\
To each a hosts file says that the name is at its service address; it downloads 1 MB, through dispatchers, as the client in Sweden. In datagrams: *before* the best site's own address first answered, *after* that. A client that does not take preferred addresses stays at the service address, all the way by the
site where it came in."""

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

# SPDX-License-Identifier: Apache-2.0
"""The paper's tables with our results, as rows of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from frontage_testbed.reporting.markdown import table as markdown_table

from ..metrics import percentile
from .events import Try, late
from .failover import Failover
from .measure import HIT_RATE
from .results import Result, mean

METHODS = {"artemis": "Artemis", "dns": "DNS", "anycast": "anycast"}
"""Titles of the paper's methods, in the order of `Published`."""
GOALS = {"setup": 39.4, "query": 24.0}
"""Goals for the latency reduction against DNS in the global deployment, in per cent."""
PUBLISHED_SHARES = {
    1: ("100%",),
    2: ("100%", "0%"),
    3: ("93.3%", "6.7%", "0%"),
    4: ("93.3%", "6.7%", "0%", "0%"),
}
"""Table 7, by X."""
Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Head and rows."""


def latencies(results: Sequence[Result]) -> Table:
    """Return Table 5: mean set-up and query latency, measured and from distances alone."""
    head = ["deployment", "", "published set-up", "ours", "by distances", "published query", "ours", "by distances"]
    rows = []
    for result in results:
        published, alone = result.scenario.published, result.least
        for index, (method, title) in enumerate(METHODS.items()):
            if samples := result.by(method):
                setup, query = mean(s.setup for s in samples), mean(s.query for s in samples)
                ours = [
                    f"{published.setup[index]:.1f}",
                    f"{setup:.1f}",
                    f"{alone[method][0]:.1f}",
                    f"{published.query[index]:.1f}",
                    f"{query:.1f}",
                    f"{alone[method][1]:.1f}",
                ]
                rows.append([result.scenario.title, title, *ours])
    return head, rows


def reductions(results: Sequence[Result]) -> Table:
    """Return by how many per cent the latency of Artemis is lower."""
    head = ["deployment", "against", "published set-up", "ours", "by distances"]
    head += ["published query", "ours", "by distances"]
    rows = []
    for result in results:
        published, alone = result.scenario.published, result.least
        for index, method in ((1, "dns"), (2, "anycast")):
            pair = result.by("artemis"), result.by(method)
            if all(pair):
                ours = [[mean(getattr(s, what) for s in samples) for samples in pair] for what in GOALS]
                theirs = [(published.setup[0], published.setup[index]), (published.query[0], published.query[index])]
                least = zip(alone["artemis"], alone[method], strict=True)
                cells = [f"{below(*x):.1f} %" for three in zip(theirs, ours, least, strict=True) for x in three]
                rows.append([result.scenario.title, METHODS[method], *cells])
    return head, rows


def below(ours: float, other: float) -> float:
    """Return by how many per cent a number is below another."""
    return (1 - ours / other) * 100


def rivals(results: Sequence[Result]) -> Table:
    """Return mean and tail of all ways to steer clients, measured, with the means from distances alone."""
    head = ["deployment", "", "set-up", "by distances", "query", "by distances", "90th percentile of queries"]
    rows = []
    for result in results:
        for method, title in (METHODS | {"regional": "regional anycast"}).items():
            if samples := result.by(method):
                times = [s.query for s in samples]
                tail = percentile(times, 0.9)
                means = (mean(s.setup for s in samples), result.least[method][0], mean(times), result.least[method][1], tail)
                rows.append([result.scenario.title, title, *(f"{value:.1f} ms" for value in means)])
    return head, rows


def routing(results: Sequence[Result]) -> Table:
    """Return Table 6: how often anycast leads away from the best site, and the additional latency."""
    head = ["deployment", "published suboptimal share", "ours", "published additional latency", "ours"]
    rows = []
    for result in results:
        published = result.scenario.published
        shares = [f"{published.suboptimal:.1%}", f"{result.suboptimal:.1%}"]
        rows.append([result.scenario.title, *shares, f"{published.extra:.2f} ms", f"{result.extra:.2f} ms"])
    return head, rows


def resolution(results: Sequence[Result]) -> Table:
    """Return the times of name resolution."""
    head = ["deployment", "names in the cache", "planned", "hit", "miss", "mean"]
    rows = []
    for result in results:
        samples = result.by("dns")
        if not samples:
            continue
        cells = [f"{mean(float(bool(s.hit)) for s in samples):.1%}", f"{HIT_RATE:.1%}"]
        for times in ([s.resolution for s in samples if s.hit is hit] for hit in (True, False)):
            cells.append(f"{mean(times):.1f} ms" if times else "")
        rows.append([result.scenario.title, *cells, f"{mean(s.resolution for s in samples):.1f} ms"])
    return head, rows


def redundancy(results: Sequence[Result]) -> Table:
    """Return Table 7: which site answered, by distance, when the first flight went to the best X sites."""
    head = ["deployment", "X", *(f"{rank} (published)" for rank in ("1st", "2nd", "3rd", "4th")), "mean set-up"]
    rows = []
    for result in results:
        for degree, published in PUBLISHED_SHARES.items():
            if samples := [s for s in result.samples if s.method == "artemis" and s.redundancy == degree]:
                cells = []
                for rank in range(len(PUBLISHED_SHARES)):
                    share = mean(float(result.rank(s) == rank) for s in samples)
                    cells.append(f"{share:.1%} ({published[rank]})" if rank < degree else "/")
                rows.append([result.scenario.title, str(degree), *cells, f"{mean(s.setup for s in samples):.1f} ms"])
    return head, rows


def events(tries: Sequence[Try]) -> Table:
    """Return the results of attempts under packet loss and site failure."""
    head = ["what happened", "X", "attempts", "failed", "waited for a retransmission", "mean set-up", "answered by"]
    rows = []
    for event, degree in dict.fromkeys((t.event, t.degree) for t in tries):
        mine = [t for t in tries if (t.event, t.degree) == (event, degree)]
        good = [t for t in mine if t.site is not None]
        sites = Counter(t.site for t in good)
        counts = [str(len(mine)), str(len(mine) - len(good)), str(late(mine))]
        time = f"{mean(t.setup for t in good):.1f} ms" if good else ""
        rows.append([event, str(degree), *counts, time, ", ".join(f"{s} {n}" for s, n in sites.most_common())])
    return head, rows


def failover(seen: Failover) -> Table:
    """Return how the computed mapping leads a client."""
    rows = [
        ["nothing is measured yet: first site to answer", seen.first, f"anycast leads to {seen.entered}"],
        ["the best site answers", seen.best, f"{seen.learned:.1f} s later"],
        ["it fails; the next best site answers", seen.heir, f"{seen.outage:.1f} s later"],
    ]
    return ["", "site", f"mapping interval: {seen.interval:g} s"], rows


def measured(seen: Failover) -> Table:
    """Return the round-trip times that the computed mapping uses."""
    head = ["site", "distance", "in handshakes", "by probes"]
    rows = []
    for number, (location, distance) in enumerate(seen.distances.items(), 1):
        rtts = {rtt.source: f"{rtt.milliseconds:.1f} ms ({rtt.count})" for rtt in seen.rtts if rtt.site == number}
        rows.append([location, f"{distance:.1f} ms", rtts.get("passive", "-"), rtts.get("active", "-")])
    return head, rows


def clients(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the results of clients that get the service address from a hosts file."""
    head = ["client", "version", "moved to", "datagrams to the service address before", "and after"]
    return head, [
        [name, row["version"], row["site"] or "stays", str(row["before"]), str(row["after"]) if row["site"] else "-"]
        for name, row in rows.items()
    ]


def runs(results: Sequence[Result]) -> Table:
    """Return the size of each deployment and the steps of its start-up."""
    head = ["deployment", "sites", "clients", "connections per client and method", "seed", "start-up"]
    rows = []
    for result in results:
        scenario = result.scenario
        sizes = (len(scenario.sites), len(scenario.clients), result.rounds, result.seed)
        steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in result.startup.items())
        rows.append([scenario.title, *map(str, sizes), steps])
    return head, rows


def unmet(results: Sequence[Result]) -> list[str]:
    """Return a message for each missed goal in the global deployment; empty where the goals do not apply."""
    missed = []
    for result in results:
        artemis, dns = result.by("artemis"), result.by("dns")
        if result.name == "global-large" and artemis and dns:
            for what, goal in GOALS.items():
                reduction = below(mean(getattr(s, what) for s in artemis), mean(getattr(s, what) for s in dns))
                if reduction < goal:
                    missed.append(f"{what} latency is {reduction:.1f} % below DNS, not {goal:g} %")
        if late := sum(map(result.asked, dns)):
            missed.append(f"{late} names that were planned as cached took as long as a query to the name server")
    return missed


def markdown(table: Table) -> str:
    """Return the table as Markdown."""
    return markdown_table(*table).rstrip()


def plain(table: Table) -> str:
    """Return the table as aligned text."""
    lines = [table[0], *table[1]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)

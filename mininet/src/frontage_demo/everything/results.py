# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/frontage.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from frontage_demo.artemis.measure import HIT_RATE
from frontage_demo.artemis.scenarios import anycast
from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.templates import PageTemplate, join
from frontage_testbed.wan.latency import Latencies

from . import siteconfig
from .addresses import BALANCERS, REAL_SERVERS, SWITCHES
from .comparison import BEGIN, PAGE, Side
from .diagram import draw
from .faults import BUSY, EPOCH, FIRST, QUIET, SECOND, TAKEOVER, Result
from .load import RATE
from .parts import AIFO_HEADROOM, FACTORIAL, NETWORKS, SYSTEMS
from .testbed import LOADED, PICTURES
from .trace import Followed


@dataclass(frozen=True)
class Run:
    """Everything that one run of the command measured."""

    seconds: float
    seed: int
    page_bytes: int
    visit: Followed
    sides: tuple[Side, Side]
    """Frontage, and the plain network."""
    faults: Result
    ablation_seconds: float
    ablation: Mapping[str, Side]
    """The networks with a part of the systems, by name; empty if not measured."""


def hops(visit: Followed) -> str:
    """Return the table of a visit's hops, with all tables that had a hit."""
    head = ("at", "switch", "packet", "tables and actions")
    rows = []
    for hop in visit.hops:
        decisions = "<br>".join(f"`{table}`: `{action}`" for table, action in hop.decisions)
        packet = f"{hop.kind}, from {hop.sender} to {hop.receiver}, {hop.length} B"
        rows.append((f"{hop.milliseconds:.1f} ms", f"{hop.site} {hop.switch}", packet, decisions))
    return table(head, rows)


def compared(sides: tuple[Side, Side]) -> str:
    """Return the table of completion times of both networks."""
    ours, plain = sides
    head = (
        "",
        "number",
        "Frontage, mean",
        "plain, mean",
        "ratio",
        "Frontage, median",
        "plain, median",
        "Frontage, p99",
        "plain, p99",
    )
    rows = []
    for name, times in ours.rows.items():
        other = plain.rows[name]
        cells = [_ms(value) for pair in ((times.median, other.median), (times.p99, other.p99)) for value in pair]
        ratio = f"{times.mean / other.mean:.2f}"
        rows.append((name, str(times.count), _ms(times.mean), _ms(other.mean), ratio, *cells))
    return table(head, rows)


def ablated(networks: Mapping[str, Side]) -> str:
    """Return the table of mean completion times of all networks, and of the median of pages."""
    classes = [name for name in next(iter(networks.values())).rows if name not in (BEGIN, PAGE)]
    head = ("network", *(f"{name}, mean" for name in classes), "page, mean", "page, median", "failed visits")
    rows = []
    for name, side in networks.items():
        means = [_ms(side.rows[each].mean) for each in (*classes, PAGE)]
        rows.append((name, *means, _ms(side.rows[PAGE].median), f"{side.failed} of {side.visits}"))
    return table(head, rows)


def effects(networks: Mapping[str, Side]) -> str:
    """Return the table of mean completion times with and without each system, over the networks of `FACTORIAL`."""
    classes = [name for name in networks[FACTORIAL[0]].rows if name != BEGIN]
    rows = []
    for system, is_used in SYSTEMS.items():
        cells = []
        for name in classes:
            used, unused = (
                mean(networks[each].rows[name].mean for each in FACTORIAL if is_used(NETWORKS[each]) == wanted)
                for wanted in (True, False)
            )
            cells.append(f"{_ms(used)} / {_ms(unused)}")
        rows.append((system, *cells))
    return table(("system", *(f"{name}, with / without" for name in classes)), rows)


def survived(result: Result) -> str:
    """Return the table of faults and failed visits."""
    head = ("fault", "at", "visits in progress", "failed on the failed server", "failed before the takeover")
    return table(
        head,
        [
            (one.fault.name, f"{one.fault.at:.0f} s", str(one.during), str(one.on_failed_server), str(one.before_takeover))
            for one in result.losses
        ],
    )


def served(serving: Sequence[tuple[float, list[int]]]) -> str:
    """Return the table of sites that got first flights."""
    return table(("from", "sites"), [(f"{at:.0f} s", ", ".join(LOADED.sites[site - 1] for site in sites)) for at, sites in serving])


def page(run: Run) -> str:
    """Return the page."""
    template = PageTemplate("frontage")
    lost = sum(one.on_failed_server + one.before_takeover for one in run.faults.losses)
    return join(
        [
            template.section(
                "head",
                switches=SWITCHES,
                balancers=BALANCERS,
                real_servers=REAL_SERVERS,
                pictures=PICTURES,
                page_kb=f"{run.page_bytes / 1e3:.0f}",
                clients=", ".join(LOADED.clients),
                detours=_detours(run.seed),
            ),
            template.section("trace", client=run.visit.client, entry=run.visit.entry, best=run.visit.best, hops=hops(run.visit)),
            template.section(
                "compared",
                seconds=f"{run.seconds:.0f}",
                seed=run.seed,
                rate=f"{RATE * len(LOADED.clients):g}",
                edge_rate=f"{siteconfig.EDGE_RATE / 1e6:g}",
                queue=siteconfig.EDGE_QUEUE,
                misses=f"{(1 - HIT_RATE) * 100:.1f}",
                table=compared(run.sides),
                failed=f"{run.sides[0].failed} of {run.sides[0].visits} with Frontage, "
                f"{run.sides[1].failed} of {run.sides[1].visits} without",
            ),
            _pages(template, run),
            _contributions(template, run),
            template.section(
                "faults",
                seconds=f"{run.seconds:.0f}",
                visits=run.faults.visits,
                lost=lost,
                unexplained=len(run.faults.unexplained),
                epoch=f"{EPOCH:g}",
                rate=f"{BUSY * len(FIRST) + QUIET * len(SECOND):g}",
                balancer=f"{TAKEOVER['balancer']:g}",
                site=f"{TAKEOVER['site']:g}",
                table=survived(run.faults),
                serving=served(run.faults.serving),
            ),
            template.section("limits"),
        ]
    )


def write(run: Run, docs: Path) -> str:
    """Write the page, and return a message with its path."""
    file = docs / "results" / "frontage.md"
    figures = file.with_suffix("")
    figures.mkdir(exist_ok=True)
    (figures / "trace.svg").write_text(draw(run.visit.hops, run.visit.entry, run.visit.best))
    file.write_text(page(run))
    return f"Wrote {file}"


def _pages(template: PageTemplate, run: Run) -> str:
    """Return the explanation of slower pages; empty if they are not slower than in the plain network."""
    ours, plain = (side.rows[PAGE].mean for side in run.sides)
    return template.section("slower", ratio=f"{ours / plain:.2f}") if ours > plain else ""


def _contributions(template: PageTemplate, run: Run) -> str:
    """Return the section about the networks with a part of the systems; empty if they were not measured."""
    if not run.ablation:
        return ""
    return template.section(
        "ablation",
        seconds=f"{run.ablation_seconds:.0f}",
        headroom=AIFO_HEADROOM,
        table=ablated(run.ablation),
        effects=effects(run.ablation),
    )


def _detours(seed: int) -> int:
    """Return the number of clients that anycast leads to a site that is not their best."""
    latencies = Latencies.published()
    routes = anycast(latencies, LOADED, seed)
    return sum(site != latencies.by_distance(location, LOADED.sites)[0] for location, site in routes.items())


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"

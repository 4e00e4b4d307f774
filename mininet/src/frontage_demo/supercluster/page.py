"""Prints the figures, and writes docs/results/auspice-supercluster.md with its plot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.plots import Axis, Line, cdf_points, picture, plot

from .figures import PhaseFigures, Times, phases, propagation, quiet
from .plan import Plan, Result
from .testbed import PLACES, round_trip

SITES = (1, 2, 3)
KINDS = ("eventual", "total-writes", "total")
COLOURS = ("#0550ae", "#0a7d84", "#cf222e")

INTRODUCTION = """# Records on a JetStream supercluster, while what may fail fails

Three regions, each a cluster of three nats-servers, joined by gateways; in network namespaces with softswitch's delays between: {distances}.
`make records` writes this page. In each region are clients and a record server; together they offer {rate:g} operations a second, a quarter of them reads, to {records} records, a third of
each [consistency](../records.md#consistency), whose homes are shared evenly (seed {seed}). Then, under that load, servers are killed with signal 9, a region's links are cut, classes and records are moved.
Nine nats-servers (`GOMAXPROCS=1`), three record servers, the switch and the clients share {cores} cores, with whatever else ran there: compare within a table.
"""

CHECKED = """## What was checked

Every operation's begin, end, version and document; and at the end what each site reads. {verdict}

- *No acknowledged write is lost*: what is there in the end is not older than anything that was acknowledged, and no version was given twice.
- *Total order* (`total`): versions respect real time, of reads too. *Total order of writes*: the same without reads, each of which is a state of that order. Nobody reads what was said not to be done, and nothing is done twice.
- *Eventual*: all sites end with the same, and that is the latest stamp.

{operations} operations. Not done, by error: {counts}. Only `outcome_unknown` (and `given_up`, by the clients at the very end) may have been done; the checker allows for either.
"""

STALLS = """## What writers see

A stall is the longest time in a phase without an acknowledged write to the records of a home site; clients there / clients elsewhere. A killed leader costs an election: nats-server waits 4 to 9 s for the old one. A home that is dead or cut off costs its
records' writers as long as that lasts, within which each step of a write is tried for 15 s, its turn among those of its record included; others are not concerned. When it is back, what has waited comes all at once, which others at those homes notice for some seconds.
"""

LATENCY = """## Update latency

In the quiet phase, milliseconds until acknowledged, median (99 %). A write goes to the record's home in one round trip, and is done there by the record server, which asks the leader beside it once: it knows what it wrote last.
"""

PROPAGATION = """## Propagation

From the beginning of a write by a client at the record's home until a subscriber elsewhere has it, milliseconds, median (99 %). All that the distance demands is half a round trip.
"""


def _ms(times: Times) -> str:
    return f"{times.quantile(0.5):.0f} ({times.quantile(0.99):.0f})" if times.values else "-"


def stalls(result: Result) -> str:
    """A row for each phase."""
    head = ["phase", "s", "writes/s", "median ms", "99 % ms", *(f"stall at home {site}, s" for site in SITES)]
    return table(head, [_stall(one) for one in phases(result)])


def _stall(one: PhaseFigures) -> list[str]:
    cells = [one.phase.name, f"{(one.phase.end - one.phase.begin) / 1e9:.0f}", f"{one.acknowledged:.0f}"]
    cells += [f"{one.latency.quantile(share):.0f}" for share in (0.5, 0.99)]
    return cells + [f"{one.stalls[home, True]:.1f} / {one.stalls[home, False]:.1f}" for home in SITES]


def latency(result: Result) -> str:
    """Of writes and of reads, by who asks whom."""
    rows = []
    for site in SITES:
        for home in SITES:
            cells = [f"{site} to {home}", "0" if site == home else f"{round_trip(site, home):.0f}"]
            cells += [_ms(quiet(result, "put", kind, site, home)) for kind in KINDS]
            cells += [_ms(quiet(result, "read", kind, site, home)) for kind in ("total-writes", "total")]
            rows.append(cells)
    head = ("from, home", "round trip", *(f"write, {kind}" for kind in KINDS), "read, mirror", "read, total")
    return table(head, rows)


def spread(result: Result) -> str:
    """How soon others see it."""
    rows = []
    for home in SITES:
        for site in SITES:
            if site != home:
                cells = [f"{home} to {site}", f"{round_trip(home, site) / 2:.0f}"]
                rows.append(cells + [_ms(propagation(result, kind, home, site)) for kind in KINDS])
    return table(("from home, to", "half a round trip", *KINDS), rows)


def svg(result: Result) -> str:
    """The distributions of update latency, by whose client writes."""
    lines, slowest = [], 1.0
    for number, kind in enumerate(KINDS):
        for near in (True, False):
            found = [quiet(result, "put", kind, a, b).values for a in SITES for b in SITES if (a == b) is near]
            values = [value for some in found for value in some]
            if values:
                lines.append(Line(f"{kind}, {'home' if near else 'elsewhere'}", number, cdf_points(values), dashed=near))
                slowest = max(slowest, *values)
    x = Axis("ms until acknowledged (dashed: by clients at the record's home)", 1, max(1000, slowest), logarithmic=True)
    drawing = plot("Records: update latency", x, Axis("share of writes", 0, 1), lines)
    return picture(drawing, COLOURS, KINDS, (70, 30))


def page(result: Result, plan: Plan) -> str:
    """The page."""
    distances = ", ".join(
        f"{PLACES[a - 1]} (site {a}) to {PLACES[b - 1]} (site {b}) {round_trip(a, b):.0f} ms" for a, b in ((1, 2), (1, 3), (2, 3))
    )
    records = len(result.homes)
    verdict = "Nothing was found." if not result.violations else "**Violations**:\n\n" + _list(result.violations)
    sums = {code: sum(some.get(code, 0) for some in result.counts.values()) for one in result.counts.values() for code in one}
    counts = ", ".join(f"{n} `{code}`" for code, n in sorted(sums.items()) if n) or "none"
    return "\n".join(
        [
            INTRODUCTION.format(distances=distances, rate=plan.rate, records=records, seed=plan.seed, cores=os.cpu_count()),
            CHECKED.format(verdict=verdict, operations=len(result.operations), counts=counts),
            STALLS,
            stalls(result),
            "Moves, under load:\n",
            _list(result.moves),
            LATENCY,
            latency(result),
            "![Distributions of update latency](auspice-supercluster/update.svg)\n",
            PROPAGATION,
            spread(result),
        ]
    )


def _list(lines: Sequence[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def write(result: Result, plan: Plan, docs: Path) -> Path:
    """Write page and plot below `docs`, and return the page's path."""
    path = docs / "results" / "auspice-supercluster.md"
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(page(result, plan).rstrip() + "\n")
    (folder / "update.svg").write_text(svg(result))
    return path

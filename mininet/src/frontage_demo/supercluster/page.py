# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/auspice-supercluster.md and its plot."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from frontage_records.routing import Routing
from frontage_testbed.reporting.figures import save
from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.plots import Axis, Line, cdf_points
from frontage_testbed.reporting.templates import PageTemplate, join

from .failures import ELECTION
from .figures import PhaseFigures, Times, phases, propagation, quiet
from .following import EPOCHS_PER_PHASE, FAULT_SHARE, MAX_EPOCHS, SHARES, FollowPlan, FollowResult
from .following import KINDS as FOLLOWED
from .partitions import PartitionResult
from .plan import Plan, Result
from .results import Results
from .testbed import REGIONS, round_trip

SITES = (1, 2, 3)
KINDS = ("eventual", "total-writes", "total")
COLOURS = ("#0550ae", "#0a7d84", "#cf222e")


def _ms(times: Times) -> str:
    return f"{times.quantile(0.5):.0f} ({times.quantile(0.99):.0f})" if times.values else "-"


def stalls(result: Result) -> str:
    """Return the table of what writers observed, one row for each phase."""
    head = ["phase", "s", "writes/s", "median, ms", "99th percentile, ms", *(f"stall at home {site}, s" for site in SITES)]
    return table(head, [_stall(figures) for figures in phases(result)])


def _stall(figures: PhaseFigures) -> list[str]:
    phase = figures.phase
    cells = [phase.name, f"{(phase.end - phase.begin) / 1e9:.0f}", f"{figures.acknowledged:.0f}"]
    cells += [f"{figures.latency.quantile(share):.0f}" for share in (0.5, 0.99)]
    return cells + [f"{figures.stalls[home, True]:.1f} / {figures.stalls[home, False]:.1f}" for home in SITES]


def latency(result: Result) -> str:
    """Return the table of write and read latency, by the sites of client and record."""
    rows = []
    for site in SITES:
        for home in SITES:
            cells = [f"{site} to {home}", "0" if site == home else f"{round_trip(site, home):.0f}"]
            cells += [_ms(quiet(result, "put", kind, site, home)) for kind in KINDS]
            cells += [_ms(quiet(result, "read", kind, site, home)) for kind in ("total-writes", "total")]
            rows.append(cells)
    head = ("client, home", "round trip", *(f"write, {kind}" for kind in KINDS), "read, mirror", "read, total")
    return table(head, rows)


def spread(result: Result) -> str:
    """Return the table of propagation times."""
    rows = []
    for home in SITES:
        for site in SITES:
            if site != home:
                cells = [f"{home} to {site}", f"{round_trip(home, site) / 2:.0f}"]
                rows.append(cells + [_ms(propagation(result, kind, home, site)) for kind in KINDS])
    return table(("home, subscriber", "half a round trip", *KINDS), rows)


def draw(result: Result, path: Path) -> None:
    """Plot the distributions of update latency, by consistency and whether the client is at the record's home."""
    lines, slowest = [], 1.0
    for number, kind in enumerate(KINDS):
        for near in (True, False):
            pairs = [(site, home) for site in SITES for home in SITES if (site == home) is near]
            values = [value for pair in pairs for value in quiet(result, "put", kind, *pair).values]
            if values:
                label = f"{kind}, {'at the home site' if near else 'elsewhere'}"
                lines.append(Line(label, number, cdf_points(values), dashed=near))
                slowest = max(slowest, *values)
    x = Axis("ms until acknowledged", 1, max(1000, slowest), logarithmic=True)
    save(path, "Records: update latency", x, Axis("share of writes", 0, 1), lines, COLOURS)


def page(results: Results, plan: Plan, follow: FollowPlan) -> str:
    """Return the page as Markdown, with the parts that have run."""
    template = PageTemplate("auspice-supercluster")
    parts = [] if results.storm is None else _storm(template, results.storm, plan)
    if results.following is not None:
        parts.append(_following(template, results.following, follow))
    if results.partitions is not None:
        parts.append(_partitions(template, results.partitions))
    return join(parts)


def _storm(template: PageTemplate, result: Result, plan: Plan) -> list[str]:
    distances = _list(
        [
            f"{REGIONS[a - 1]} (site {a}) to {REGIONS[b - 1]} (site {b}): {round_trip(a, b):.0f} ms"
            for a, b in ((1, 2), (1, 3), (2, 3))
        ]
    )
    verdict = "It found no violation." if not result.violations else "**Violations**:\n\n" + _list(result.violations)
    sums: Counter[str] = Counter()
    for counts in result.counts.values():
        sums.update(counts)
    return [
        template.section(
            "introduction",
            distances=distances,
            rate=f"{plan.rate:g}",
            records=len(result.homes),
            seed=plan.seed,
            cores=os.cpu_count(),
        ),
        template.section(
            "checked",
            verdict=verdict,
            operations=len(result.operations),
            counts=", ".join(f"{n} `{code}`" for code, n in sorted(sums.items()) if n) or "none",
        ),
        template.section("stalls", table=stalls(result), moves=_list(result.moves)),
        template.section("latency", table=latency(result)),
        template.section("propagation", table=spread(result)),
    ]


def _following(template: PageTemplate, result: FollowResult, plan: FollowPlan) -> str:
    rows = []
    for phase in result.phases:
        means = [f"{sample.mean:.1f}" for sample in phase.samples]
        failed = Counter(request.result for request, _ in result.failed(phase))
        rows.append(
            [
                phase.name,
                *means,
                f"{phase.samples[-1].optimum:.1f}",
                "-" if phase.followed is None else str(phase.followed),
                *(f"{sample.read:.0f}" for sample in (phase.samples[1], phase.samples[-1])),
                str(result.sent(phase)),
                ", ".join(f"{n} `{code}`" for code, n in sorted(failed.items())) or "0",
            ]
        )
    ends = [f"end of epoch {number}" for number in range(1, EPOCHS_PER_PHASE + 1)]
    head = ["phase", "at the move", *ends, "optimum", "epochs", "first read, ms", "last read, ms", "requests", "failed"]
    violations = (
        "No acknowledged write was lost, and the records followed in time."
        if not result.violations
        else "**Violations**:\n\n" + _list(result.violations)
    )
    return template.section(
        "following",
        table=table(head, rows),
        rate=f"{plan.rate:g}",
        records=plan.records * len(FOLLOWED),
        epoch=f"{plan.epoch:g}",
        fault=f"{FAULT_SHARE * plan.epoch:g}",
        shares=", ".join(f"{share:.0%}" for share in SHARES),
        moves=", ".join(f"{number} `{code}`" for code, number in sorted(result.moves.items())) or "none",
        capacity=", ".join(f"{value:.0f} at site {site}" for site, value in result.capacity.items()),
        verdict=violations,
        max_epochs=MAX_EPOCHS,
        deadline=f"{Routing().deadline:g}",
        failed=sum(len(result.failed(phase)) for phase in result.phases),
        requests=sum(result.sent(phase) for phase in result.phases),
        election=f"{ELECTION:g}",
        causes=_causes(result),
    )


def _causes(result: FollowResult) -> str:
    """Return the table of failed requests by phase, fault, cause, kind of record and error."""
    numbers: Counter[tuple[str, ...]] = Counter()
    for phase in result.phases:
        fault = "none" if phase.fault is None else f"{phase.fault.kind}, site {phase.fault.site}"
        for request, cause in result.failed(phase):
            operation = f"{request.kind}, `{result.kinds[request.guid]}`"
            numbers[phase.name, fault, str(cause), operation, str(request.region), f"`{request.result}`"] += 1
    head = ["phase", "fault", "cause", "operation", "client at site", "error", "requests"]
    return table(head, [[*key, str(number)] for key, number in sorted(numbers.items())]) if numbers else "No request failed."


def _partitions(template: PageTemplate, result: PartitionResult) -> str:
    times = sorted(result.convergence)
    verdict = "The final documents contained every acknowledged write." if not result.violations else _list(result.violations)
    return template.section(
        "partitions",
        seeds=result.seeds,
        cuts=result.cuts,
        writes=result.writes,
        cut=result.at_cut_site,
        refused=result.refused,
        slowest=f"{result.slowest:.1f}",
        median=f"{times[len(times) // 2]:.1f}" if times else "-",
        longest=f"{times[-1]:.1f}" if times else "-",
        verdict=verdict,
    )


def _list(lines: Sequence[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def write(results: Results, plan: Plan, follow: FollowPlan, docs: Path) -> Path:
    """Write the page and its plot below `docs`, and return the page's path."""
    path = docs / "results" / "auspice-supercluster.md"
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(page(results, plan, follow))
    assert results.storm is not None
    draw(results.storm, folder / "update.svg")
    return path

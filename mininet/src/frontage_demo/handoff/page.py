# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/qdsr.md: each figure with its plot, beside the published results."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from frontage_testbed.reporting.figures import save
from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.plots import Axis, Line
from frontage_testbed.reporting.templates import PageTemplate, join

from . import connections, latency, measure, rates
from .latency import Latencies
from .measure import PARALLEL, PARALLEL_SIZES, Result
from .rates import change
from .testbed import FORMS, HANDOFF, PROXY
from .topology import OWDS

Row = dict[str, Any]
COLOURS = ("#cf222e", "#0550ae", "#0a7d84", "#8250df")
FOLDER = "qdsr"
FUNCTIONS = {
    "tcp_receive": "TCP, receiving",
    "tcp_send": "TCP, sending",
    "udp_receive": "UDP, receiving",
    "udp_send": "UDP, sending",
    "encryption": "encryption",
    "user": "rest of user space",
    "kernel": "rest of the kernel",
}
"""Functions of a balancer in the results of `make bench ONLY=qdsr-cpu`, with titles."""
Points = Sequence[tuple[float, float]]


def bench_rows(path: Path) -> dict[str, Row]:
    """Return the results of `make bench` for the balancer by name; empty if it has not run."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return {row["name"]: row for row in rows if row["name"].startswith("qdsr_")}


def _sizes(rows: dict[str, Row]) -> list[int]:
    matches = (re.fullmatch(r"qdsr_(\d+)KiB_throughput", name) for name in rows)
    return sorted(int(match[1]) for match in matches if match)


def figure_7(rows: dict[str, Row]) -> str:
    """Return the table of throughput by object size."""
    nginx = next((row["peer"] for name, row in rows.items() if name.endswith("_nginx")), None)
    head = ["object", "hand-off, requests/s", "proxy", "hand-off, Gbit/s", "proxy", "hand-off / proxy (quartiles)"]
    head += ["hand-off, single-path clients, requests/s", "hand-off, per-connection, requests/s"]
    cells = []
    for size in _sizes(rows):
        requests, bits = rows[f"qdsr_{size}KiB_requests"], rows[f"qdsr_{size}KiB_throughput"]
        low, high = (rows[f"qdsr_{size}KiB_share_{end}"]["value"] / 100 for end in ("low", "high"))
        line = [f"{size} KiB", f"{requests['value']:,.0f}", f"{requests['peer_value']:,.0f}"]
        line += [f"{bits['value'] / 1000:.2f}", f"{bits['peer_value'] / 1000:.2f}"]
        line.append(f"{rows[f'qdsr_{size}KiB_share']['value'] / 100:.2f} ({low:.2f} to {high:.2f})")
        line += [f"{rows[f'qdsr_{size}KiB_requests_{kind}']['value']:,.0f}" for kind in ("one_path", "per_connection")]
        if nginx:
            line.append(f"{rows[f'qdsr_{size}KiB_requests_nginx']['peer_value']:,.0f}")
        cells.append(line)
    head += [f"{nginx}, requests/s"] if nginx else []
    return table(head, cells)


def _figure_7_section(template: PageTemplate, rows: dict[str, Row]) -> str:
    if not rows:
        return template.section("figure-7", table=template.section("figure-7-missing"), summary="")
    most = rows["qdsr_maximum_throughput"]
    summary = template.section(
        "figure-7-summary",
        ratio=f"{most['ratio']:.1f}",
        ours=f"{most['value'] / 1000:.1f}",
        proxy=f"{most['peer_value'] / 1000:.1f}",
    )
    return template.section("figure-7", table=figure_7(rows), summary=summary)


def figure_8(rows: dict[str, Row]) -> str:
    """Return the table of core time by function; empty if it was not measured."""
    lines = []
    for size in _sizes(rows):
        measured = [rows[name] for function in FUNCTIONS if (name := f"qdsr_cpu_{size}KiB_{function}") in rows]
        if not measured:
            continue
        for form, key in ((PROXY, "peer_value"), (HANDOFF, "value")):
            times = [row[key] for row in measured]
            lines.append([f"{size} KiB", form, *(f"{time:,.1f}" for time in times), f"{sum(times):,.1f}"])
    return table(["object", "balancer", *FUNCTIONS.values(), "total"], lines) if lines else ""


def _figure_8_section(template: PageTemplate, rows: dict[str, Row]) -> str:
    return template.section("figure-8", table=figure_8(rows) or template.section("figure-8-missing"))


def figure_9(result: Result) -> str:
    """Return the table of requests per second by parallelism."""
    head = [
        "in flight",
        *(f"{size // 1000} kB: {column}" for size in PARALLEL_SIZES for column in (PROXY, HANDOFF, "difference")),
    ]
    cells = []
    for parallel in PARALLEL:
        line = [str(parallel)]
        for size in PARALLEL_SIZES:
            requests = result.requests[f"{size} x {parallel}"]
            line += [f"{requests[PROXY]:,.0f}/s", f"{requests[HANDOFF]:,.0f}/s", change(requests[HANDOFF], requests[PROXY])]
        cells.append(line)
    return table(head, cells)


def figure_10_section(template: PageTemplate, measured: Latencies) -> str:
    """Return the section about latency."""
    return template.section(
        "figure-10",
        asked=latency.ASKED,
        background=latency.BACKGROUND_SIZE,
        padding=latency.PADDING,
        table=figure_10(measured),
    )


def figure_10(measured: Latencies) -> str:
    """Return the table of latencies: medians in ms, and context switches per second."""
    head = ["other connections"]
    for what in ("round trip", "uplink", "downlink"):
        head += [f"{what}: {PROXY}", HANDOFF, "difference"]
    cells = []
    for count, by_form in measured.items():
        proxy, ours = (by_form[form] for form in FORMS)
        line = [count]
        for theirs, own in (
            (proxy.round_trip_ms, ours.round_trip_ms),
            (proxy.uplink_ms, ours.uplink_ms),
            (proxy.downlink_ms, ours.downlink_ms),
        ):
            middle = median(theirs), median(own)
            line += [f"{middle[0]:.3f} ms", f"{middle[1]:.3f} ms", change(middle[1], middle[0])]
        cells.append([*line, *(f"{one.switches:,.0f}" for one in (proxy, ours))])
    return table([*head, f"context switches per second: {PROXY}", HANDOFF], cells)


def figure_12(result: Result) -> str:
    """Return the table of times to the first byte."""
    cells = []
    for name, (near, far, direct) in OWDS.items():
        proxy, ours = (mean(result.first_ms[name][form]) for form in FORMS)
        model = (2 * (near + far), near + far + direct)
        cells.append(
            [
                f"{name}: {near}, {far}, {direct}",
                f"{model[0]} ms",
                f"{proxy:.1f} ms",
                f"{model[1]} ms",
                f"{ours:.1f} ms",
                change(ours, proxy),
            ]
        )
    head = [
        "one-way delays, ms: client and balancer, balancer and real server, real server and client",
        "proxy, delays alone",
        "measured",
        "hand-off, delays alone",
        "measured",
        "difference",
    ]
    return table(head, cells)


def fairness(result: Result) -> str:
    """Return the table of shares at the bottleneck, with Jain's index."""
    cells = []
    for name, (one, other) in result.shares.items():
        jain = (one + other) ** 2 / (2 * (one**2 + other**2))
        cells.append([name, f"{one:.2f} Mbit/s", f"{other:.2f} Mbit/s", f"{100 * one / (one + other):.0f} %", f"{jain:.2f}"])
    return table(["", "first", "second", "first's share", "Jain's index"], cells)


def draw(result: Result, rows: dict[str, Row], folder: Path) -> None:
    """Write the plots into `folder`."""
    if rows:
        points = [(size, rows[f"qdsr_{size}KiB_throughput"]) for size in _sizes(rows)]
        curves: list[Points] = [[(size, row[key] / 1000) for size, row in points] for key in ("peer_value", "value")]
        x = Axis("object size (KiB)", 1, 1024, True)
        _draw(folder / "figure7.svg", "Throughput of a saturated balancer", x, "Gbit/s per core", FORMS, curves)
    names, curves = [], []
    for size in PARALLEL_SIZES:
        for form in FORMS:
            names.append(f"{form}, {size // 1000} kB")
            curves.append([(n, result.requests[f"{size} x {n}"][form]) for n in PARALLEL])
    x = Axis("requests in flight", 1, 32, True)
    _draw(folder / "figure9.svg", "Requests by parallelism", x, "requests per second", names, curves)
    curves = [[(float(loss) * 100, mbits[form]) for loss, mbits in result.rates.items() if float(loss)] for form in FORMS]
    x = Axis("packets lost (%)", 0.01, 10, True)
    _draw(folder / "figure13.svg", "Download rate with losses", x, "Mbit/s", FORMS, curves)


def _draw(path: Path, title: str, x: Axis, unit: str, names: Sequence[str], curves: Sequence[Points]) -> None:
    lines = [Line(name, number, points) for number, (name, points) in enumerate(zip(names, curves, strict=True))]
    top = max(value for points in curves for _, value in points)
    save(path, title, x, Axis(unit, 0, 1.1 * top), lines, COLOURS)


def page(result: Result, rows: dict[str, Row]) -> str:
    """Return the page as Markdown."""
    template = PageTemplate("qdsr")
    return join(
        [
            template.section("introduction", seed=measure.SEED),
            _figure_7_section(template, rows),
            _figure_8_section(template, rows),
            template.section("figure-9", owd=measure.PARALLEL_OWD, table=figure_9(result)),
            figure_10_section(template, result.latency),
            template.section("figure-12", table=figure_12(result)),
            connections.section(template, result.early),
            rates.figure_13_section(template, result),
            rates.single_path_section(template, result.single_path),
            template.section(
                "fairness",
                rate=measure.FAIR_RATE,
                rtt=2 * measure.FAIR_DELAY,
                queue=measure.FAIR_QUEUE,
                seconds=measure.FAIR_SECONDS,
                table=fairness(result),
            ),
        ]
    )


def write(result: Result, rows: dict[str, Row], docs: Path) -> Path:
    """Write the page and its plots below `docs`, and return the page's path."""
    path = docs / "results" / "qdsr.md"
    (path.parent / FOLDER).mkdir(parents=True, exist_ok=True)
    draw(result, rows, path.parent / FOLDER)
    path.write_text(page(result, rows))
    return path


def renew(section: str, docs: Path) -> Path:
    """Replace the section with the same heading in the page below `docs`, and return the page's path."""
    path = docs / "results" / "qdsr.md"
    text = path.read_text()
    heading, _, _ = section.partition("\n")
    before, found, rest = text.partition(f"{heading}\n")
    if not found:
        raise SystemExit(f"{path}: missing section {heading!r}: run `make qdsr` for the whole page")
    _, mark, after = rest.partition("\n## ")
    path.write_text(f"{before}{section}\n{mark}{after}")
    return path

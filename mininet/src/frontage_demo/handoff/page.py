"""Writes docs/results/qdsr.md: each figure, with its plot, beside what is published."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.plots import Axis, Line, picture, plot

from . import measure, rates
from .measure import FORMS, OWDS, PARALLEL, PARALLEL_SIZES, Result
from .rates import less
from .testbed import HANDOFF, PROXY

Row = dict[str, Any]
COLOURS = ("#cf222e", "#0550ae", "#0a7d84", "#8250df")
FOLDER = "qdsr"

INTRODUCTION = f"""# QDSR, measured

*QDSR: Accelerating Layer-7 Load Balancing by Direct Server Return with QUIC* (Wei et al., ATC 2024), section 5: a balancer that hands requests to real servers, beside the same balancer as a proxy. `make qdsr` writes this page; [how it works](../handoff.md).
Everything is real: `frontage-cclb7-quic`, `frontage-real-server` and an unmodified client of noq's with multipath, in network namespaces. Delays, rates and losses are softswitch's (seed {measure.SEED}); Figure 7 is of `make bench ONLY=qdsr`.
The paper prints plots without numbers; *published* is what its text says of them. Where the machine is busy, requests per second and delays without wires' differ from run to run.
"""
FIGURE_7 = """## Figure 7: throughput of a balancer at its limit

Eight connections with eight downloads under way on each. The balancer gets a twentieth of a core and uses all of that, since two cores cannot keep a whole one busy; the figures are for a whole core. Handshakes and grants are in them.
"""
FIGURE_9 = f"""## Figure 9: requests per second by parallelism

One connection. Client, balancer and real server are {measure.PARALLEL_OWD} ms from one another, and nothing is near its limit: a request that is handed over goes three ways, one that is proxied four. Published: 4.8 to 18.5 % more requests, on a testbed of one switch, where the ways are a smaller part of a request's time.
"""
FIGURE_10 = f"""## Figure 10: downlink one-way delay

From an answer's leaving the real server to its coming to the client, by packet captures with one clock; wires without delay. Objects of {measure.ASKED} bytes, one after the other, beside connections that ask for {measure.SAID} bytes all the time. Published: about 50 % less, at any load.
"""
FIGURE_12 = """## Figure 12: first packet

Until the first byte of an answer, on a connection that is there. Published: almost the same in A, where the balancer is on the way, and much less in B and C, where it is not. Its delays are in a plot alone; these are ours.
"""
FAIRNESS = f"""## Fairness at a bottleneck

{measure.FAIR_RATE} Mbit/s, {2 * measure.FAIR_DELAY} ms, {measure.FAIR_QUEUE} packets' queue, {measure.FAIR_SECONDS} s of downloads. The first has three objects under way where it says three, each from another real server or over a connection of its own; the others have one. Each real server has a congestion controller of its own for its path
(the paper's limitation, section 7.1), so a connection on which three of them send may take up to three times as much as a plain one; less where one of them waits for its next request. Jain's index is 1 where both get the same, and 0.5 where one gets all.
"""


def bench_rows(path: Path) -> dict[str, Row]:
    """What `make bench ONLY=qdsr` found, by name; nothing if it did not run."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return {row["name"]: row for row in rows if row["name"].startswith("qdsr_")}


def _sizes(rows: dict[str, Row]) -> list[int]:
    found = (re.fullmatch(r"qdsr_(\d+)KiB_throughput", name) for name in rows)
    return sorted(int(match[1]) for match in found if match)


def figure_7(rows: dict[str, Row]) -> str:
    """Of the benchmark's rows."""
    if not rows:
        return "`make bench ONLY=qdsr` has not been run.\n"
    nginx = next((row["peer"] for name, row in rows.items() if name.endswith("_nginx")), None)
    one_path = any(name.endswith("_one_path") for name in rows)
    head = ["object", "hand-off, requests/s", "proxy", "hand-off, Gbit/s", "proxy", "hand-off by proxy (quartiles)"]
    cells = []
    for size in _sizes(rows):
        requests, bits = rows[f"qdsr_{size}KiB_requests"], rows[f"qdsr_{size}KiB_throughput"]
        low, high = (rows[f"qdsr_{size}KiB_share_{end}"]["value"] / 100 for end in ("low", "high"))
        line = [f"{size} KiB", f"{requests['value']:,.0f}", f"{requests['peer_value']:,.0f}"]
        line += [f"{bits['value'] / 1000:.2f}", f"{bits['peer_value'] / 1000:.2f}"]
        line.append(f"{rows[f'qdsr_{size}KiB_share']['value'] / 100:.2f} ({low:.2f} to {high:.2f})")
        if one_path:
            line.append(f"{rows[f'qdsr_{size}KiB_requests_one_path']['value']:,.0f}")
        if nginx:
            line.append(f"{rows[f'qdsr_{size}KiB_requests_nginx']['peer_value']:,.0f}")
        cells.append(line)
    most = rows["qdsr_maximum_throughput"]
    said = f"Maximum throughput is **{most['ratio']:.1f} times** the proxy's (published: 12.2 times): {most['value'] / 1000:.1f} Gbit/s of a core by {most['peer_value'] / 1000:.1f}.\n"
    head += ["hand-off, clients of one path, requests/s"] if one_path else []
    head += [f"{nginx}, requests/s"] if nginx else []
    return table(head, cells) + "\n" + said


def figure_9(result: Result) -> str:
    """Requests."""
    head = [
        "at a time",
        *(f"{size // 1000} kB: {what}" for size in PARALLEL_SIZES for what in (PROXY, HANDOFF, "more")),
    ]
    cells = []
    for parallel in PARALLEL:
        line = [str(parallel)]
        for size in PARALLEL_SIZES:
            found = result.requests[f"{size} x {parallel}"]
            line += [f"{found[PROXY]:,.0f}/s", f"{found[HANDOFF]:,.0f}/s", less(found[HANDOFF], found[PROXY])]
        cells.append(line)
    return table(head, cells)


def figure_10(result: Result) -> str:
    """Delays."""
    cells = []
    for connections, found in result.downlink_ms.items():
        proxy, ours = (median(found[form]) for form in FORMS)
        cells.append([connections, f"{proxy:.3f} ms", f"{ours:.3f} ms", less(ours, proxy)])
    return table(["connections beside it", "proxy, median", "hand-off, median", "difference"], cells)


def figure_12(result: Result) -> str:
    """First packets."""
    cells = []
    for name, (near, far, straight) in OWDS.items():
        proxy, ours = (mean(result.first_ms[name][form]) for form in FORMS)
        model = (2 * (near + far), near + far + straight)
        cells.append(
            [
                f"{name}: {near}, {far}, {straight}",
                f"{model[0]} ms",
                f"{proxy:.1f} ms",
                f"{model[1]} ms",
                f"{ours:.1f} ms",
                less(ours, proxy),
            ]
        )
    head = [
        "one-way delays, ms: client and balancer, balancer and real server, real server and client",
        "proxy, of the delays",
        "measured",
        "hand-off, of the delays",
        "measured",
        "difference",
    ]
    return table(head, cells)


def fairness(result: Result) -> str:
    """Shares, and Jain's index."""
    cells = []
    for what, (one, other) in result.shares.items():
        jain = (one + other) ** 2 / (2 * (one**2 + other**2))
        cells.append([what, f"{one:.2f} Mbit/s", f"{other:.2f} Mbit/s", f"{100 * one / (one + other):.0f} %", f"{jain:.2f}"])
    return table(["", "first", "second", "first's share", "Jain's index"], cells)


def drawings(result: Result, rows: dict[str, Row]) -> dict[str, str]:
    """The plots, by name."""
    found = {}
    values: list[list[tuple[float, float]]]
    if rows:
        points = [(size, rows[f"qdsr_{size}KiB_throughput"]) for size in _sizes(rows)]
        values = [[(size, row[key] / 1000) for size, row in points] for key in ("peer_value", "value")]
        top = max(y for _, y in values[1])
        found["figure7"] = _draw(
            "Throughput of a balancer at its limit",
            Axis("KiB of an object", 1, 1024, True),
            Axis("Gbit/s of a core", 0, 1.1 * top),
            list(FORMS),
            values,
        )
    values, names = [], []
    for size in PARALLEL_SIZES:
        for form in FORMS:
            names.append(f"{form}, {size // 1000} kB")
            values.append([(n, result.requests[f"{size} x {n}"][form]) for n in PARALLEL])
    top = max(y for line in values for _, y in line)
    found["figure9"] = _draw(
        "Requests by parallelism",
        Axis("requests at a time", 1, 32, True),
        Axis("requests per second", 0, 1.1 * top),
        names,
        values,
    )
    values = [[(float(loss) * 100, found[form]) for loss, found in result.rates.items() if float(loss)] for form in FORMS]
    found["figure13"] = _draw(
        "Download rate with losses",
        Axis("% of packets lost", 0.01, 10, True),
        Axis("Mbit/s", 0, 12),
        list(FORMS),
        values,
    )
    return found


def _draw(title: str, x: Axis, y: Axis, names: Sequence[str], values: Sequence[Sequence[tuple[float, float]]]) -> str:
    lines = [Line(name, number, points) for number, (name, points) in enumerate(zip(names, values, strict=True))]
    return picture(plot(title, x, y, lines), COLOURS, names, (70, 30))


def page(result: Result, rows: dict[str, Row]) -> str:
    """The page."""

    def drawn(name: str, what: str) -> str:
        return f"![{what}]({FOLDER}/{name}.svg)\n"

    parts = [INTRODUCTION, FIGURE_7, figure_7(rows)]
    parts += [drawn("figure7", "Throughput by size")] if rows else []
    parts += [FIGURE_9, figure_9(result), drawn("figure9", "Requests by parallelism"), FIGURE_10, figure_10(result)]
    parts += [
        FIGURE_12,
        figure_12(result),
        rates.FIGURE_13,
        rates.figure_13(result),
        drawn("figure13", "Rates by loss"),
    ]
    return "\n".join([*parts, rates.ONE_PATH_CLIENTS, rates.one_path(result), FAIRNESS, fairness(result)])


def write(result: Result, rows: dict[str, Row], docs: Path) -> Path:
    """Write page and plots below `docs`, and return the page's path."""
    path = docs / "results" / "qdsr.md"
    (path.parent / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, drawing in drawings(result, rows).items():
        (path.parent / FOLDER / f"{name}.svg").write_text(drawing)
    path.write_text(page(result, rows).rstrip() + "\n")
    return path

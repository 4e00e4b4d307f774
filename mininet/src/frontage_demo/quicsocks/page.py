# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/quicsocks.md and its plot: measurements beside the model and the published figures."""

from __future__ import annotations

from pathlib import Path

from frontage_testbed.reporting.figures import save
from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.plots import Axis, Line, cdf_points
from frontage_testbed.reporting.templates import PageTemplate, join

from .costs import Cost
from .measure import COLD, WARM, Result, Row
from .model import LTE, PUBLISHED, Method, RoundTrips, establishment, formula

COLOURS = ("#cf222e", "#0550ae", "#0a7d84")
METHODS: tuple[Method, ...] = ("status quo", "proposal")
RETRY = {False: "without", True: "with"}


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def _find(result: Result, method: Method, start: str, retry: bool, cached: bool = True) -> Row | None:
    wanted = (method, start, retry, cached)
    return next((row for row in result.rows if (row.method, row.start, row.retry, row.cached) == wanted), None)


def symbolic() -> str:
    """Return the model in symbols: the paper's Table I."""
    rows = [(RETRY[retry], *(formula(method, retry) for method in METHODS)) for retry in (False, True)]
    return table(("Stateless retry", "Status quo", "Proposal"), rows)


def numbers(times: RoundTrips) -> str:
    """Return the model in ms: with the paper's LTE figures its Table II."""
    rows = [(RETRY[retry], *(f"{establishment(method, retry, times):g} ms" for method in METHODS)) for retry in (False, True)]
    return table(("Stateless retry", "Status quo", "Proposal"), rows)


def measured(result: Result) -> str:
    """Return the medians beside the model and the published figures."""
    rows = []
    for retry in (False, True):
        for method, start in (("status quo", ""), ("proposal", WARM), ("proposal", COLD)):
            row = _find(result, method, start, retry)  # type: ignore[arg-type]
            if row is None:
                continue
            published = None if start == COLD else PUBLISHED[row.method, retry]
            times = result.round_trips
            # A cold start adds the TCP handshake and one round trip of SOCKS.
            model = establishment(row.method, retry, times) + (2 * times.dns if start == COLD else 0)
            moved = sorted(row.migrated_ms)[len(row.migrated_ms) // 2] if row.migrated_ms else None
            fresh = _find(result, row.method, start, retry, cached=False)
            cells = (f"{row.method} {start}".strip(), RETRY[retry], _ms(published), _ms(model), _ms(row.median_ms))
            rows.append((*cells, _ms(fresh.median_ms if fresh else None), _ms(moved), str(len(row.handshake_ms))))
    head = (
        "",
        "Retry",
        "published",
        "model with measured RTTs",
        "measured, median",
        "resolver cache empty",
        "migrated at",
        "n",
    )
    return table(head, rows)


def saving(result: Result) -> str:
    """Return a sentence on what the proxy saves."""
    savings = []
    for retry in (False, True):
        quo, warm = (_find(result, method, start, retry) for method, start in (("status quo", ""), ("proposal", WARM)))  # type: ignore[arg-type]
        if quo and warm:
            share = 100 * (1 - warm.median_ms / quo.median_ms)
            paper = 100 * (1 - PUBLISHED["proposal", retry] / PUBLISHED["status quo", retry])
            savings.append(f"{share:.1f} % {RETRY[retry]} Retry (published: {paper:.1f} %)")
    return f"When warm, the proxy saves {' and '.join(savings)}.\n"


def compared(costs: list[Cost]) -> str:
    """Return the costs of a connection through each proxy."""
    rows = [
        (
            f"{cost.proxy} {cost.start}",
            RETRY[cost.retry],
            _ms(cost.median_ms),
            f"{cost.bytes_sent:,.0f}",
            f"{cost.bytes_received:,.0f}",
            f"{cost.cpu_ms:.2f} ms",
            str(len(cost.handshake_ms)),
        )
        for cost in costs
    ]
    head = ("", "Retry", "set-up, median", "bytes sent", "bytes received", "CPU time of the proxy", "n")
    return table(head, rows)


def draw(result: Result, path: Path) -> None:
    """Plot the distributions of handshake times."""
    lines, slowest = [], 0.0
    for retry in (False, True):
        for number, (method, start) in enumerate((("status quo", ""), ("proposal", WARM), ("proposal", COLD))):
            row = _find(result, method, start, retry)  # type: ignore[arg-type]
            if row:
                label = f"{method} {start}".strip() + f", {RETRY[retry]} Retry"
                lines.append(Line(label, number, cdf_points(row.handshake_ms), step=True, dashed=retry))
                slowest = max(slowest, *row.handshake_ms)
    x = Axis("ms until the handshake is complete", 0, 20 * (slowest // 20 + 1))
    save(path, "QuicSocks: connection set-up", x, Axis("share of connections", 0, 1), lines, COLOURS)


def page(result: Result, costs: list[Cost]) -> str:
    """Return the page as Markdown."""
    template, times = PageTemplate("quicsocks"), result.round_trips
    counters = [(name, f"{count:g}") for name, count in result.proxy.items() if count]
    legs = {"client to provider": times.dns, "client to server": times.direct, "proxy to server": times.server}
    return join(
        [
            template.section("introduction"),
            template.section("model", symbolic=symbolic(), numbers=numbers(LTE)),
            template.section(
                "measured",
                round_trips=", ".join(f"{leg} {_ms(time)}" for leg, time in legs.items()),
                table=measured(result),
                saving=saving(result),
                counters=table(("", "n"), counters),
            ),
            template.section("masque", table=compared(costs)),
        ]
    )


def write(result: Result, costs: list[Cost], docs: Path) -> Path:
    """Write the page and its plot below `docs`, and return the page's path."""
    path = docs / "results" / "quicsocks.md"
    (path.parent / "quicsocks").mkdir(parents=True, exist_ok=True)
    draw(result, path.parent / "quicsocks" / "setup.svg")
    path.write_text(page(result, costs))
    return path

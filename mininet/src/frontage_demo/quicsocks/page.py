"""Prints the figures beside the model's and the published ones, and writes docs/results/quicsocks.md with its plot."""

from __future__ import annotations

from pathlib import Path

from frontage_testbed.reporting.markdown import table
from frontage_testbed.reporting.plots import Axis, Line, cdf_points, picture, plot

from .measure import COLD, WARM, Result, Row
from .model import LTE, PUBLISHED, RoundTrips, Way, establishment, formula

COLOURS = ("#cf222e", "#0550ae", "#0a7d84")
WAYS: tuple[Way, ...] = ("status quo", "proposal")
RETRY = {False: "without", True: "with"}

INTRODUCTION = """# QuicSocks, measured

*Accelerating QUIC's Connection Establishment on High-Latency Access Networks* (Sy et al.), section IV-A: how long it takes until client and server
have their keys, name resolution included. `make quicsocks` writes this page. A client is 30 ms from its provider and 60 ms from the server; resolver and proxy
are half-way. Everything is real: unbound, nsd, `frontage-cclb7-quic`, `frontage-quicsocks` in network namespaces; the delays are softswitch's. [How it works](../quicsocks.md).
"""

NOTES = """*Warm*: the client has its association already; *cold*: making it counts (TCP, then all of SOCKS in one round trip). Each connection that went through the proxy
migrated to the direct path, and the proxy then ended its flow. Where the resolver has to ask, unbound asks twice: it looks for a zone cut at each name that it does not know.
"""


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def _find(result: Result, way: Way, start: str, retry: bool, cached: bool = True) -> Row | None:
    wanted = (way, start, retry, cached)
    return next((row for row in result.rows if (row.way, row.start, row.retry, row.cached) == wanted), None)


def symbolic() -> str:
    """The model in symbols: the paper's Table I."""
    rows = [(RETRY[retry], *(formula(way, retry) for way in WAYS)) for retry in (False, True)]
    return table(("Stateless retry", "Status quo", "Proposal"), rows)


def numbers(times: RoundTrips) -> str:
    """The model in ms: with the paper's LTE figures its Table II."""
    rows = [(RETRY[retry], *(f"{establishment(way, retry, times):g} ms" for way in WAYS)) for retry in (False, True)]
    return table(("Stateless retry", "Status quo", "Proposal"), rows)


def measured(result: Result) -> str:
    """The medians, beside the model and what is published."""
    rows = []
    for retry in (False, True):
        for way, start in (("status quo", ""), ("proposal", WARM), ("proposal", COLD)):
            row = _find(result, way, start, retry)  # type: ignore[arg-type]
            if row is None:
                continue
            published = None if start == COLD else PUBLISHED[row.way, retry]
            times = result.round_trips
            # TCP's handshake, then all of SOCKS.
            model = establishment(row.way, retry, times) + (2 * times.dns if start == COLD else 0)
            moved = sorted(row.migrated_ms)[len(row.migrated_ms) // 2] if row.migrated_ms else None
            fresh = _find(result, row.way, start, retry, cached=False)
            cells = (f"{row.way} {start}".strip(), RETRY[retry], _ms(published), _ms(model), _ms(row.median_ms))
            rows.append((*cells, _ms(fresh.median_ms if fresh else None), _ms(moved), str(len(row.handshake_ms))))
    head = (
        "",
        "Retry",
        "published",
        "model, RTTs as pinged",
        "measured, median",
        "resolver has to ask",
        "migrated at",
        "n",
    )
    return table(head, rows)


def saving(result: Result) -> str:
    """What the proxy saves, in words."""
    said = []
    for retry in (False, True):
        quo, warm = (_find(result, way, start, retry) for way, start in (("status quo", ""), ("proposal", WARM)))  # type: ignore[arg-type]
        if quo and warm:
            share = 100 * (1 - warm.median_ms / quo.median_ms)
            paper = 100 * (1 - PUBLISHED["proposal", retry] / PUBLISHED["status quo", retry])
            said.append(f"{share:.1f} % {RETRY[retry]} Retry (published: {paper:.1f} %)")
    return f"Warm, the proxy saves {' and '.join(said)}.\n"


def svg(result: Result) -> str:
    """The distributions of handshake times."""
    lines, slowest = [], 0.0
    for retry in (False, True):
        for number, (way, start) in enumerate((("status quo", ""), ("proposal", WARM), ("proposal", COLD))):
            row = _find(result, way, start, retry)  # type: ignore[arg-type]
            if row:
                label = f"{way} {start}, {RETRY[retry]} Retry"
                lines.append(Line(label, number, cdf_points(row.handshake_ms), step=True, dashed=retry))
                slowest = max(slowest, *row.handshake_ms)
    x = Axis("ms until the handshake is complete (dashed: with Retry)", 0, 20 * (slowest // 20 + 1))
    drawing = plot("QuicSocks: connection set-up", x, Axis("share of connections", 0, 1), lines)
    return picture(drawing, COLOURS, ("status quo", "proposal, warm", "proposal, cold"), (440, 220))


def page(result: Result) -> str:
    """The page."""
    times = result.round_trips
    counted = [(name, f"{count:g}") for name, count in result.proxy.items() if count]
    legs = {"client to provider": times.dns, "client to server": times.direct, "proxy to server": times.server}
    pinged = f"Round trips as pinged: {', '.join(f'{leg} {_ms(time)}' for leg, time in legs.items())}.\n"
    return "\n".join(
        [
            INTRODUCTION,
            "## The model\n\nIn symbols (the paper's Table I), and with 30, 60 and 30 ms (Table II):\n",
            symbolic(),
            numbers(LTE),
            "## Measured\n",
            pinged,
            measured(result),
            NOTES,
            saving(result),
            "![Distributions of the time until the handshake is complete](quicsocks/setup.svg)\n",
            "What the proxy counted:\n",
            table(("", "n"), counted),
        ]
    )


def write(result: Result, docs: Path) -> Path:
    """Write page and plot below `docs`, and return the page's path."""
    path = docs / "results" / "quicsocks.md"
    (path.parent / "quicsocks").mkdir(parents=True, exist_ok=True)
    path.write_text(page(result).rstrip() + "\n")
    (path.parent / "quicsocks" / "setup.svg").write_text(svg(result))
    return path

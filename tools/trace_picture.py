#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw a trace from a file of the OpenTelemetry Collector (exporter `file`) as an SVG.

    tools/trace_picture.py traces.json TRACE_ID >trace.svg

Each span is a bar below its parent, as in the views of Jaeger and Tempo.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

WIDTH, LABELS, ROW = 900, 330, 22
"""Pixels: of the picture, of the names, and of the height of a row."""
SHOWN = ("frontage.device", "frontage.updates")
"""Attributes that follow the name of a span."""
STYLE = (
    "text { font: 12px sans-serif; fill: #24292f; } .time { fill: #57606a; } .bar { fill: #0550ae; } .write { fill: #bc4c00; } "
    ".back { fill: #ffffff; }"
)

Span = dict[str, Any]


def spans_of(file: Path, trace: str) -> list[Span]:
    """Return the spans of a trace, in the order of their starts."""
    requests = [json.loads(line) for line in file.read_text().splitlines()]
    scopes = (scope for request in requests for resource in request["resourceSpans"] for scope in resource["scopeSpans"])
    found = [span for scope in scopes for span in scope["spans"] if span["traceId"] == trace]
    return sorted(found, key=lambda span: int(span["startTimeUnixNano"]))


def tree(spans: list[Span]) -> Iterator[tuple[int, Span]]:
    """Yield each span and its depth, parents first."""
    known = {span["spanId"] for span in spans}

    def below(parent: str | None, depth: int) -> Iterator[tuple[int, Span]]:
        for span in spans:
            above = span.get("parentSpanId")
            if (above if above in known else None) == parent:
                yield depth, span
                yield from below(span["spanId"], depth + 1)

    return below(None, 0)


def label(span: Span) -> str:
    """Return the name of a span with the attributes that tell it from others."""
    values = {one["key"]: next(iter(one["value"].values())) for one in span.get("attributes", ())}
    return " ".join([span["name"], *(f"{name.partition('.')[2]}={values[name]}" for name in SHOWN if name in values)])


def draw(spans: list[Span]) -> str:
    """Return the picture."""
    begin = min(int(span["startTimeUnixNano"]) for span in spans)
    length = max(int(span["endTimeUnixNano"]) for span in spans) - begin
    scale = (WIDTH - LABELS - 80) / length
    rows = []
    for row, (depth, span) in enumerate(tree(spans)):
        start, end = int(span["startTimeUnixNano"]) - begin, int(span["endTimeUnixNano"]) - begin
        y, left, width = row * ROW + 8, LABELS + start * scale, max(1.0, (end - start) * scale)
        kind = "write" if "Write" in span["name"] else "bar"
        rows.append(f'<text x="{8 + 14 * depth}" y="{y + 12}">{escape(label(span))}</text>')
        rows.append(f'<rect class="{kind}" x="{left:.1f}" y="{y + 2}" width="{width:.1f}" height="{ROW - 8}"/>')
        rows.append(f'<text class="time" x="{left + width + 4:.1f}" y="{y + 12}">{(end - start) / 1e6:.1f} ms</text>')
    height = len(spans) * ROW + 16
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="A trace" xmlns="http://www.w3.org/2000/svg">'
        f'<style>{STYLE}</style><title>A trace</title><rect class="back" width="{WIDTH}" height="{height}"/>'
        f"{''.join(rows)}</svg>\n"
    )


def main() -> int:
    """Draw the trace that the command names."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    found = spans_of(Path(sys.argv[1]), sys.argv[2])
    if not found:
        print(f"{sys.argv[1]}: no spans of trace {sys.argv[2]}: use a trace id of the file", file=sys.stderr)
        return 1
    sys.stdout.write(draw(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

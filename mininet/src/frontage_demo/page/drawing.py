# SPDX-License-Identifier: Apache-2.0
"""The report's drawings as inline SVG: paths of packets, bytes by sender, and a waterfall of the objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from frontage_testbed.reporting.plots import Axis

from .loads import Load

LABELS, RIGHT, TOP, BOTTOM = 64, 10, 4, 34
ROW, BAR = 10, 7
"""Pixels between the rows of two objects, and height of an object's bar."""
BALANCER = "by-balancer"


def colours(servers: Sequence[str]) -> dict[str, str]:
    """Return each server's CSS class: the balancer is first, and real servers have their pictures' colours."""
    balancer, *others = servers
    return {balancer: BALANCER} | {name: f"by-{index % 7}" for index, name in enumerate(others)}


def legend(servers: Sequence[str]) -> str:
    """Return an HTML list that maps colours to servers."""
    classes = colours(servers)
    texts = {name: f"real server {name}" for name in servers} | {servers[0]: f"balancer {servers[0]}"}
    items = "".join(f'<li><span class="key {classes[s]}"></span>{escape(texts[s])}</li>' for s in servers)
    return f'<ul class="legend">{items}</ul>'


def waterfall(title: str, load: Load, last: float, width: int = 520) -> str:
    """Draw a row for each object in its sender's colour: pale from the request to the first byte, solid until the last.

    `last` is the end of the axis in seconds.
    """
    classes = colours(list(load.bodies))
    began = load.objects[0].asked
    x = Axis("ms since the request for the page", 0, last * 1e3)
    inner, bottom = width - LABELS - RIGHT, TOP + ROW * len(load.objects)

    def px(seconds: float) -> float:
        return LABELS + x.position((seconds - began) * 1e3) * inner

    parts = _svg(title, width, bottom + BOTTOM)
    for value, text in x.ticks():
        at = LABELS + x.position(value) * inner
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 14}" text-anchor="middle">{text}</text>')
    for row, fetched in enumerate(load.objects):
        sender = load.senders[fetched.path]
        y = TOP + ROW * row + (ROW - BAR) / 2
        details = f"{fetched.path}: {fetched.bytes} bytes from {sender}, requested at {(fetched.asked - began) * 1e3:.0f} ms, "
        details += f"first byte at {(fetched.first - began) * 1e3:.0f} ms, last at {(fetched.end - began) * 1e3:.0f} ms"
        parts.append(f'<g class="{classes[sender]}"><title>{escape(details)}</title>')
        parts.append(_bar(px(fetched.asked), px(fetched.first), y, BAR, "wait"))
        parts.append(_bar(px(fetched.first), px(fetched.end), y, BAR))
        parts.append("</g>")
        name = fetched.path.split("/", 2)[-1].removesuffix(".png").removesuffix(".html")
        parts.append(f'<text class="row" x="{LABELS - 6}" y="{y + BAR:.1f}">{escape(name)}</text>')
    middle = LABELS + inner / 2
    parts.append(f'<text class="axis" x="{middle:.0f}" y="{bottom + 29}" text-anchor="middle">{x.label}</text></svg>')
    return "".join(parts)


def shares(title: str, rows: Mapping[str, Mapping[str, int]], width: int = 900) -> str:
    """Draw a bar for each load: bytes by sender."""
    label, value, height = 215, 80, 26
    most = max(sum(row.values()) for row in rows.values())
    classes = colours(list(next(iter(rows.values()))))
    parts = _svg(title, width, height * len(rows) + 4)
    for number, (name, row) in enumerate(rows.items()):
        y = 4 + number * height
        parts.append(f'<text class="value last" x="{label - 10}" y="{y + 14}">{escape(name)}</text>')
        at = float(label)
        for server, count in row.items():
            to = at + (width - label - value) * count / max(most, 1)
            title = f"<title>{escape(name)}: {count} bytes from {escape(server)}</title>"
            parts.append(f'<g class="{classes[server]}">{title}{_bar(at, to, y, height - 8)}</g>')
            at = to
        parts.append(f'<text class="value" x="{at + 8:.1f}" y="{y + 14}">{sum(row.values()) / 1e6:.2f} MB</text>')
    return "".join([*parts, "</svg>"])


def paths(direct: bool) -> str:
    """Draw the paths of packets: the client's go to the balancer, pictures come from their senders."""
    parts = _svg("With hand-off" if direct else "As a proxy", 440, 190)
    boxes = {"client": (10, 74), "switch": (140, 74), "balancer": (320, 8), "real servers": (320, 136)}
    up = "M90 88H140M220 84C270 80 270 24 320 24M362 50V136"
    parts.append(f'<path class="way up" d="{up}"/>')
    if direct:
        for number in range(3):
            begin, end = 148 + 10 * number, 100 + 6 * number
            line = f"M320 {begin}C260 {begin} 270 {end} 220 {end}M140 {end}H94"
            parts.append(f'<path class="way down by-{number}" d="{line}"/>')
    else:
        for number in range(3):
            parts.append(f'<path class="way down by-{number}" d="M{384 + 8 * number} 136V54"/>')
        parts.append(f'<path class="way down {BALANCER}" d="M320 38C250 40 270 106 220 106M140 106H94"/>')
    for name, (x, y) in boxes.items():
        parts.append(f'<rect class="box" x="{x}" y="{y}" width="{80 if x < 300 else 110}" height="46" rx="6"/>')
        parts.append(f'<text class="label" x="{x + (40 if x < 300 else 55)}" y="{y + 27}">{name}</text>')
    return "".join([*parts, "</svg>"])


def _svg(title: str, width: int, height: float) -> list[str]:
    text = escape(title)
    return [f'<svg viewBox="0 0 {width} {height:g}" role="img" aria-label="{text}" class="plot"><title>{text}</title>']


def _bar(begin: float, end: float, y: float, height: float, more: str = "") -> str:
    return f'<rect class="{more}" x="{begin:.1f}" y="{y:.1f}" width="{max(end - begin, 0.8):.1f}" height="{height:g}"/>'

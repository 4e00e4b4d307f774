# SPDX-License-Identifier: Apache-2.0
"""Line plots as inline SVG for the demo's HTML reports, coloured by a style sheet that fits light and dark pages.

Pages in docs/results have plots by matplotlib (`figures`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 40
MAX_POINTS = 600
"""Maximum points of a line; more would not be visible."""


@dataclass(frozen=True)
class Line:
    """One curve. `style` is the number of its colour."""

    label: str
    style: int
    points: Sequence[tuple[float, float]]
    step: bool = False
    dashed: bool = False

    @property
    def classes(self) -> str:
        """CSS classes of the line."""
        return f"s{self.style} dashed" if self.dashed else f"s{self.style}"


@dataclass(frozen=True)
class Axis:
    """An axis and its range."""

    label: str
    low: float
    high: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Return the position of a value between the ends of the axis, from 0 to 1."""
        if self.logarithmic:
            value, low, high = (math.log10(max(v, 1e-12)) for v in (value, self.low, self.high))
        else:
            low, high = self.low, self.high
        return min(1.0, max(0.0, (value - low) / (high - low)))

    def ticks(self) -> list[tuple[float, str]]:
        """Return the values with tick marks, and their labels."""
        if self.logarithmic:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
            digits = (1, 2, 5) if len(decades) <= 4 else (1,)
            values = [d * 10.0**e for e in [*decades, decades.stop] for d in digits]
            return [(v, f"{v:g}") for v in values if self.low <= v <= self.high]
        raw = (self.high - self.low) / 5
        magnitude = 10 ** math.floor(math.log10(raw))
        step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(i * step, f"{i * step:g}") for i in range(first, last + 1)]


def cdf_points(values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the points of the empirical distribution, at most `MAX_POINTS` and exact at the ends."""
    ordered = sorted(values)
    count = len(ordered)
    return _thin([(v, (i + 1) / count) for i, v in enumerate(ordered)])


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) <= MAX_POINTS:
        return points
    stride = len(points) / MAX_POINTS
    return [points[int(i * stride)] for i in range(MAX_POINTS)] + [points[-1]]


def plot(title: str, x: Axis, y: Axis, lines: Sequence[Line], width: int = 640, height: int = 340) -> str:
    """Return an SVG element with the lines."""
    inner_width, inner_height = width - LEFT - RIGHT, height - TOP - BOTTOM

    def px(value: float) -> float:
        return LEFT + x.position(value) * inner_width

    def py(value: float) -> float:
        return TOP + (1 - y.position(value)) * inner_height

    parts = [
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" class="plot">',
        f"<title>{escape(title)}</title>",
    ]
    for value, text in x.ticks():
        at = f"{px(value):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{TOP + inner_height}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{TOP + inner_height + 14}" text-anchor="middle">{text}</text>')
    for value, text in y.ticks():
        at = f"{py(value):.1f}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + inner_width}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{py(value) + 4:.1f}" text-anchor="end">{text}</text>')
    middle = LEFT + inner_width / 2
    parts.append(f'<text class="axis" x="{middle:.0f}" y="{height - 6}" text-anchor="middle">{escape(x.label)}</text>')
    turned = f'transform="translate(12 {TOP + inner_height / 2:.0f}) rotate(-90)"'
    parts.append(f'<text class="axis" x="0" y="0" text-anchor="middle" {turned}>{escape(y.label)}</text>')
    for line in lines:
        path = _path([(px(a), py(b)) for a, b in line.points], line.step)
        parts.append(f'<path class="line {line.classes}" d="{path}"><title>{escape(line.label)}</title></path>')
    parts.append("</svg>")
    return "".join(parts)


def legend(lines: Sequence[Line]) -> str:
    """Return an HTML list that maps colours to lines."""
    items = "".join(f'<li><span class="key {line.classes}"></span>{escape(line.label)}</li>' for line in lines)
    return f'<ul class="legend">{items}</ul>'


def _path(points: Sequence[tuple[float, float]], step: bool) -> str:
    commands: list[str] = []
    for number, (a, b) in enumerate(points):
        if number == 0:
            commands.append(f"M{a:.1f} {b:.1f}")
        elif step:
            commands.append(f"H{a:.1f}V{b:.1f}")
        else:
            commands.append(f"L{a:.1f} {b:.1f}")
    return "".join(commands)

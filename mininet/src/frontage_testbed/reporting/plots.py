"""Plots as inline SVG: lines over linear or logarithmic axes, coloured by style sheet so that they fit a light and a
dark page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 40
MAX_POINTS = 600
"""Points a line is drawn with at most; more would not be seen."""
PICTURE = (
    "text { font: 11px sans-serif; fill: #57606a; } .grid { stroke: #d0d7de; } "
    ".line { fill: none; stroke-width: 1.8; } .dashed { stroke-dasharray: 5 3; }"
)
"""Style of a plot that stands on no page."""


@dataclass(frozen=True)
class Line:
    """One curve. `style` is its colour's number in the style sheet."""

    label: str
    style: int
    points: Sequence[tuple[float, float]]
    step: bool = False
    dashed: bool = False

    @property
    def classes(self) -> str:
        """Of the style sheet."""
        return f"s{self.style} dashed" if self.dashed else f"s{self.style}"


@dataclass(frozen=True)
class Axis:
    """An axis and its range."""

    label: str
    low: float
    high: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Where a value is between the axis's ends, 0 to 1."""
        if self.logarithmic:
            value, low, high = (math.log10(max(v, 1e-12)) for v in (value, self.low, self.high))
        else:
            low, high = self.low, self.high
        return min(1.0, max(0.0, (value - low) / (high - low)))

    def ticks(self) -> list[tuple[float, str]]:
        """Marked values and their texts."""
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
    """The empirical distribution of some values, thinned in the middle but exact at the ends."""
    ordered = sorted(values)
    count = len(ordered)
    return _thin([(v, (i + 1) / count) for i, v in enumerate(ordered)])


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) <= MAX_POINTS:
        return points
    stride = len(points) / MAX_POINTS
    return [points[int(i * stride)] for i in range(MAX_POINTS)] + [points[-1]]


def plot(title: str, x: Axis, y: Axis, lines: Sequence[Line], width: int = 640, height: int = 340) -> str:
    """An SVG with the lines and a legend."""
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
    """Which colour is which line."""
    items = "".join(f'<li><span class="key {line.classes}"></span>{escape(line.label)}</li>' for line in lines)
    return f'<ul class="legend">{items}</ul>'


def picture(drawing: str, colours: Sequence[str], names: Sequence[str], place: tuple[int, int]) -> str:
    """A plot as a file of its own. Lines have the colours of their styles, and so have `names`, written from `place` on
    downwards.
    """
    x, y = place
    keys = "".join(
        f'<text x="{x}" y="{y + 14 * number}" style="fill: {colours[number]}">{escape(name)}</text>'
        for number, name in enumerate(names)
    )
    style = PICTURE + "".join(f" .s{number} {{ stroke: {colour}; }}" for number, colour in enumerate(colours))
    whole = drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" style="background: white" ', 1)
    return whole.replace("</svg>", f"{keys}<style>{style}</style></svg>\n")


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

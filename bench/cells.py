# SPDX-License-Identifier: Apache-2.0
"""Cells and tables of docs/performance.md."""

from __future__ import annotations

from typing import Any, TypeAlias

Rows: TypeAlias = dict[str, dict[str, Any]]
"""Rows of the results by name."""


def number(value: float | None) -> str:
    """Format a value with three significant digits."""
    if value is None:
        return "-"
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}x"


def microseconds(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1000:.3g} us"


def milliseconds(microseconds: float | None) -> str:
    return "-" if microseconds is None else f"{microseconds / 1000:.3g} ms"


def figure(rows: Rows, name: str, key: str = "value") -> float | None:
    value = rows.get(name, {}).get(key)
    return None if value is None else float(value)


def compared(rows: Rows, name: str) -> str:
    """Return the cells of a row: value, peer's value and ratio."""
    return f"{number(figure(rows, name))} | {against(rows, name)}"


def against(rows: Rows, name: str) -> str:
    """Return the cells of a row's peer: its value and the ratio."""
    return f"{number(figure(rows, name, 'peer_value'))} | {ratio(figure(rows, name, 'ratio'))}"


def table(header: str, lines: list[str]) -> str:
    columns = header.count("|") - 1
    return "\n".join([header, "|---|" + "---:|" * (columns - 1), *lines]) + "\n"

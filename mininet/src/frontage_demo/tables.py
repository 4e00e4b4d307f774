"""Tables of the report that count packets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any


def counts_table(counts: Mapping[str, Mapping[str, int]], order: Callable[[str], Any] = str) -> str:
    """A row a run, a column a name that was counted at all, in order; empty if there is none."""
    names = counted(counts, order)
    if not names:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{run}</td>{''.join(f'<td>{row.get(name, 0)}</td>' for name in names)}</tr>" for run, row in counts.items()
    )
    return f'<div class="scroll"><table><thead><tr><th>policy</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def counted(counts: Mapping[str, Mapping[str, int]], order: Callable[[str], Any] = str) -> list[str]:
    """The names that were counted at all, in order."""
    return sorted({name for row in counts.values() for name, count in row.items() if count}, key=order)

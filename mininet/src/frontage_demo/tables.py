# SPDX-License-Identifier: Apache-2.0
"""Tables of packet counts for the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any


def counts_table(counts: Mapping[str, Mapping[str, int]], order: Callable[[str], Any] = str) -> str:
    """Return a table with a row per run and a column per name with a count; empty without counts."""
    names = counted(counts, order)
    if not names:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{run}</td>{''.join(f'<td>{row.get(name, 0)}</td>' for name in names)}</tr>" for run, row in counts.items()
    )
    return f'<div class="scroll"><table><thead><tr><th>policy</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def counted(counts: Mapping[str, Mapping[str, int]], order: Callable[[str], Any] = str) -> list[str]:
    """Return the names that have a count, in order."""
    return sorted({name for row in counts.values() for name, count in row.items() if count}, key=order)

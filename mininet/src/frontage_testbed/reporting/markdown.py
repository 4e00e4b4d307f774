"""Tables as pages in docs/ have them."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown, with a line's end: all columns that have a head are to the right, but for the first."""
    rule = ["---" if number == 0 or not name else "---:" for number, name in enumerate(head)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)) + "\n"

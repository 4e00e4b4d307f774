# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/tofino.md that `make tofino` writes: they lie between two marks."""

from __future__ import annotations

from collections.abc import Iterable

from tofino import ROOT

PAGE = ROOT / "docs" / "tofino.md"


def write(name: str, lines: Iterable[str]) -> None:
    """Replace the part of this name. Exits if the page does not have its marks."""
    begin, end = f"<!-- {name}: written by make -->", f"<!-- end of {name} -->"
    before, _, rest = PAGE.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"{PAGE}: missing marks '{begin}' and '{end}': add them")
    PAGE.write_text(before + "\n".join([begin, *lines, end]) + after)


def table(*rows: Iterable[object]) -> list[str]:
    """Return the lines of a table; the first row is its header."""
    header, *others = (f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)
    return [header, "|" + " --- |" * (header.count("|") - 1), *others]

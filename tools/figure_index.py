# SPDX-License-Identifier: Apache-2.0
"""Write the index of the papers' figures (docs/results/README.md) from docs/results/figures.yaml and the pages of results.

figures.yaml lists each figure, its kind (measured, simulated, formula, input, or missing), and the published values. Our values are
read from the tables of the pages. A value that differs by more than LIMIT from the published one needs a reason.

Examples: tools/figure_index.py
          tools/figure_index.py --check
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"
LIMIT = 0.25
"""Largest relative difference from a published value that needs no reason."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")

HEAD = """# Index of the papers' figures

This page lists each figure and table of the papers, with the published values and ours.
`tools/figure_index.py` writes it from [`figures.yaml`](figures.yaml) and the pages of results.

- *Measured*: real programs on this machine.
- *Simulated*: in the simulator, in which each packet passes through the compiled P4 program, or in another simulation.
- *Formula*: computed from the paper's or our own parameters.
- *Input*: the figure's values are parameters of an experiment, not its results.
- *Missing*: not reproduced on any page.

*Product code* names the parts of Frontage that the experiment executes.
Values that differ from the published ones by more than a quarter have a reason.
"""


class Strict(BaseModel):
    """A part of figures.yaml, which has no other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Cell(Strict):
    """A number in a table of a page: the first one in the cell."""

    section: str = ""
    """Heading under which the table stands; the whole page if empty."""
    row: tuple[str, ...]
    """First cells of the row."""
    column: str | int
    """Heading of the column, or its number from 0 on."""


class Value(Strict):
    """A value that the paper states."""

    what: str
    published: float
    ours: Cell
    over: Cell | None = None
    """Denominator, if our value is a ratio."""
    reason: str = ""


class Figure(Strict):
    """A figure or table of a paper."""

    name: str
    shows: str
    kind: Literal["measured", "simulated", "formula", "input", "missing"]
    product: str = ""
    """Parts of the product that the experiment executes."""
    page: str = ""
    note: str = ""
    values: tuple[Value, ...] = ()


class Index(Strict):
    """The content of figures.yaml: the figures of each paper."""

    papers: dict[str, tuple[Figure, ...]] = Field(min_length=1)


class FigureError(Exception):
    """An entry does not fit its page; the message says which, and why."""


def cells(line: str) -> list[str]:
    """Return the cells of a table's line."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text: str, section: str) -> Iterator[list[list[str]]]:
    """Yield the tables under a heading, or all of a page: the head, and the rows."""
    heading, table = "", list[list[str]]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            table.append(cells(line))
            continue
        if len(table) > 2 and section in ("", heading):
            yield [table[0], *table[2:]]
        table = []
        if line.startswith("#"):
            heading = line.lstrip("# ")


def read(cell: Cell, text: str, where: str) -> float:
    """Return the number in a cell. Raises FigureError unless the page has exactly one such row and column."""
    found = []
    for head, *rows in tables(text, cell.section):
        column = cell.column if isinstance(cell.column, int) else head.index(cell.column) if cell.column in head else len(head)
        found += [row[column] for row in rows if tuple(row[: len(cell.row)]) == cell.row and column < len(row)]
    if len(found) != 1:
        raise FigureError(f"{where}: {len(found)} cells in row {list(cell.row)} and column {cell.column!r}, not 1")
    number = NUMBER.search(found[0])
    if number is None:
        raise FigureError(f"{where}: no number in {found[0]!r}, row {list(cell.row)}")
    return float(number[0].replace(",", ""))


def compare(value: Value, text: str, where: str) -> str:
    """Return the row that compares our value with the published one.

    Raises FigureError if they differ by more than LIMIT without a reason.
    """
    ours = read(value.ours, text, where)
    if value.over is not None:
        ours /= read(value.over, text, where)
    ratio = ours / value.published
    if abs(ratio - 1) > LIMIT and not value.reason:
        raise FigureError(f"{where}: {value.what}: {ours:.3g} is {ratio:.2f} times the published {value.published:g}: add a reason")
    return f"| {where} | {value.what} | {value.published:g} | {ours:.3g} | {ratio:.2f} | {value.reason} |"


def paper(name: str, figures: tuple[Figure, ...], results: Path) -> Iterator[str]:
    """Yield the lines of a paper's section."""
    yield from (f"## {name}", "", "| figure | content | kind | product code | page | remarks |", "|---|---|---|---|---|---|")
    lines = []
    for figure in figures:
        page = f"[{Path(figure.page).stem}]({figure.page})" if figure.page else "-"
        yield f"| {figure.name} | {figure.shows} | {figure.kind} | {figure.product or '-'} | {page} | {figure.note} |"
        if figure.values:
            text = (results / figure.page).read_text()
            lines += [compare(value, text, figure.name) for value in figure.values]
    if lines:
        yield from ("", "| figure | value | published | ours | ratio | reason |", "|---|---|---:|---:|---:|---|", *lines)


def index(results: Path) -> str:
    """Return the text of the index. Raises FigureError, or ValidationError for a wrong field."""
    listed = Index.model_validate(yaml.safe_load((results / "figures.yaml").read_text()))
    sections = ["\n".join(paper(name, figures, results)) for name, figures in listed.papers.items()]
    return "\n".join([HEAD, *(section + "\n" for section in sections)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that the index is up to date")
    check = parser.parse_args().check
    try:
        text = index(RESULTS)
    except (FigureError, ValidationError) as error:
        print(f"docs/results/figures.yaml: {error}", file=sys.stderr)
        return 1
    file = RESULTS / "README.md"
    if not check:
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        print(f"docs/results/{file.name}: out of date: run `tools/figure_index.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

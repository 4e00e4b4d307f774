# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/figure_index.py`: values from tables of pages, and reasons for differences."""

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import figure_index

PAGE = """# Results

| scheme | load | ours (ms) | ours |
|---|---:|---:|---:|
| fast | 0.8 | 1,200.5 ± 7 | 3 |
| slow | 0.8 | 2401 ms | -4 % |

## Again

| scheme | ours |
|---|---:|
| fast | 9 |
| none | - |
"""

ENTRY = """papers:
  A:
    - name: Figure 1
      shows: times
      kind: simulated
      page: page.md
      values:
        - {what: slow / fast, published: %s, ours: {row: [slow], column: ours (ms)}, over: {row: [fast, "0.8"], column: 2}%s}
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path


def test_values_are_read_from_the_tables(results: Path) -> None:
    (results / "figures.yaml").write_text(ENTRY % ("2.5", ""))
    assert "| Figure 1 | slow / fast | 2.5 | 2 | 0.80 |  |\n" in figure_index.index(results)


def test_a_large_difference_needs_a_reason(results: Path) -> None:
    (results / "figures.yaml").write_text(ENTRY % ("3", ""))
    with pytest.raises(figure_index.FigureError, match=r"Figure 1: slow / fast: 2 is 0.67 times the published 3: add a reason"):
        figure_index.index(results)
    (results / "figures.yaml").write_text(ENTRY % ("3", ", reason: slower disks"))
    assert "| 0.67 | slower disks |" in figure_index.index(results)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ({"row": ["fast"], "column": "ours", "section": "Again"}, 9.0),
        ({"row": ["slow"], "column": "ours"}, -4.0),
        ({"row": ["fast"], "column": "ours"}, "2 cells"),
        ({"row": ["fast"], "column": "theirs"}, "0 cells"),
        ({"row": ["slower"], "column": 1}, "0 cells"),
        ({"row": ["none"], "column": "ours"}, "no number"),
    ],
)
def test_cell(cell: dict[str, object], expected: float | str) -> None:
    place = figure_index.Cell.model_validate(cell)
    if isinstance(expected, float):
        assert figure_index.read(place, PAGE, "Figure 1") == expected
        return
    with pytest.raises(figure_index.FigureError, match=expected):
        figure_index.read(place, PAGE, "Figure 1")


def test_an_unknown_field_is_an_error(results: Path) -> None:
    (results / "figures.yaml").write_text("papers: {A: [{name: Figure 1, shows: x, kind: guessed}]}\n")
    with pytest.raises(ValidationError, match="kind"):
        figure_index.index(results)

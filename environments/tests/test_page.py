# SPDX-License-Identifier: Apache-2.0
"""The page and the exit status follow from the results."""

from pathlib import Path

import page
from results import Results
from sandbox import Outcome

PASSED, FAILED = Outcome(True, "", 3.2), Outcome(False, "h2 receives | no message", 60)


def recorded(tmp_path: Path, *outcomes: tuple[str, str, Outcome]) -> Results:
    results = Results.load(tmp_path / "result.json")
    for row, toolset, outcome in outcomes:
        results.record(row, toolset, outcome)
    return results


def rows(text: str) -> list[list[str]]:
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if cells[0] not in ("exercise", "---")]


def test_row_shows_reason_next_to_result_on_peers(tmp_path: Path) -> None:
    results = recorded(tmp_path, ("tutorials/calc", "softswitch", FAILED), ("tutorials/calc", "bmv2", PASSED))
    text = page.text(results)
    assert [[cells[0], *cells[2:]] for cells in rows(text)] == [["calc", "fails: h2 receives / no message", "passes"]]
    assert "0 of 1 rows pass on softswitch and 1 of 1 rows pass on p4c and BMv2." in text


def test_row_that_did_not_run_on_peers_says_so(tmp_path: Path) -> None:
    results = recorded(tmp_path, ("tutorials/calc", "softswitch", PASSED))
    assert rows(page.text(results))[0][-1] == "not run"


def test_results_survive_in_the_file(tmp_path: Path) -> None:
    recorded(tmp_path, ("tutorials/calc", "bmv2", PASSED))
    results = recorded(tmp_path, ("tutorials/calc", "softswitch", PASSED))
    assert set(Results.load(results.path).rows["tutorials/calc"]) == {"softswitch", "bmv2"}


def test_run_fails_for_rows_that_pass_on_peers_only(tmp_path: Path) -> None:
    results = recorded(
        tmp_path,
        ("tutorials/basic", "softswitch", PASSED),
        ("tutorials/calc", "softswitch", FAILED),
        ("tutorials/calc", "bmv2", PASSED),
        ("tutorials/ecn", "softswitch", FAILED),
        ("tutorials/ecn", "bmv2", FAILED),
        ("tutorials/mri", "softswitch", FAILED),
    )
    names = ["tutorials/basic", "tutorials/calc", "tutorials/ecn", "tutorials/mri", "tutorials/qos"]
    assert results.regressions(names) == ["tutorials/calc", "tutorials/mri"]

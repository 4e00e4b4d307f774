# SPDX-License-Identifier: Apache-2.0
"""The namespaces of a row."""

import os
import subprocess
from pathlib import Path

import pytest

import sandbox
from catalogue import ROWS
from rows import Row
from sandbox import Checkout, check_visible, play
from toolsets import ToolError, Toolset


def test_files_below_tmp_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "BUILD", Path("/srv/build"))
    check_visible([Toolset("own", "own", (Path("/usr/bin"),))], [Checkout(Path("/tmp/tutorials"))])
    with pytest.raises(ToolError, match=r"/tmp/modules: rows do not see /tmp: move it elsewhere"):
        check_visible([], [Checkout(Path("/srv/learning"), ("/tmp/modules",))])


@pytest.mark.skipif(os.geteuid() != 0 and bool(os.environ.get("ALLOW_SKIPS")), reason="namespaces need root")
def test_row_without_its_exercise_fails_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The row's folder must not be below /tmp.
    build = Path(__file__).parents[2] / "build" / f"environments-test-{os.getpid()}"
    monkeypatch.setattr(sandbox, "BUILD", build)
    real = next(row for row in ROWS if row.name == "tutorials/calc")
    (tmp_path / "exercises").mkdir()
    row = Row(real.name, ("exercises",), real.check, real.play)
    try:
        outcome = play(row, Checkout(tmp_path), Toolset("own", "own", ()))
    finally:
        subprocess.run(["rm", "-r", str(build)], check=True)
    assert (outcome.passed, outcome.reason) == (False, "the checkout has no solution/*.p4")

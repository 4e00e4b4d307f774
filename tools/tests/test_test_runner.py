# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/test-runner`: it passes exit codes on, and ends a program that exceeds its limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[1] / "test-runner"


def run(code: str, limit: float) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TEST_LIMIT": str(limit)}
    return subprocess.run(
        [RUNNER, sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("code", [0, 1, 101])
def test_exit_code_is_passed_on(code: int) -> None:
    assert run(f"raise SystemExit({code})", 60).returncode == code


def test_program_that_hangs_is_ended_with_its_stacks() -> None:
    result = run("import threading; threading.Event().wait()", 0.5)
    assert result.returncode == 124
    assert "did not end within 0.5 s" in result.stderr
    assert "hread" in result.stderr.partition("\n")[2]

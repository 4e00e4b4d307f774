# SPDX-License-Identifier: Apache-2.0
"""Outcomes are compared with the reasons for failures."""

from pathlib import Path

import pytest

import explained
from outcomes import Outcome, surprises

PASSED, FAILED = Outcome("a/Passes", True), Outcome("a/Fails", False, "ValueError: 1")


def test_failure_with_reason_is_expected() -> None:
    assert surprises([PASSED, FAILED], {"a/Fails": "why"}, complete=True) == []


def test_failure_without_reason_shows_what_was_seen() -> None:
    assert surprises([PASSED, FAILED], {}, complete=True) == ["a/Fails: ValueError: 1"]


def test_reason_of_passing_sample_is_stale() -> None:
    for complete in (True, False):
        found = surprises([PASSED], {"a/Passes": "why"}, complete, "reasons.toml")
        assert found == ["a/Passes: passes or no longer exists: remove it from reasons.toml"]


def test_reason_of_missing_sample_is_stale_only_if_everything_ran() -> None:
    reasons = {"a/Removed": "why"}
    assert surprises([PASSED], reasons, complete=False) == []
    assert len(surprises([PASSED], reasons, complete=True)) == 1


def test_sample_has_one_reason(tmp_path: Path) -> None:
    file = tmp_path / "reasons.toml"
    file.write_text('[[ptf]]\nreason = "1"\nsamples = ["a/T"]\n[[ptf]]\nreason = "2"\nsamples = ["a/T"]\n')
    with pytest.raises(explained.ExplainedError, match=r"reasons\.toml: ptf: a/T has two reasons"):
        explained.load(file)


@pytest.mark.parametrize("name", ["explained.toml", "explained_tna.toml"])
def test_files_of_reasons_are_valid(name: str) -> None:
    assert isinstance(explained.load(explained.FILE.with_name(name)), dict)

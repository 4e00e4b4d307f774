# SPDX-License-Identifier: Apache-2.0
"""Tests that the tests which docs/security.md names for its claims exist."""

import re

import pytest
from pages import REPOSITORY

CLAIM = re.compile(r"^\| (?P<claim>[^|]+) \| `(?P<file>[\w./-]+?)(?:::(?P<name>\w+))?` \|$", re.MULTILINE)
PAGE = (REPOSITORY / "docs" / "security.md").read_text().partition("## Claims and their tests")[2]


def test_every_claim_has_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(CLAIM.findall(PAGE)) == len(rows) - 1  # the heading
    assert len(rows) > 30


@pytest.mark.parametrize(("file", "name"), [(m["file"], m["name"]) for m in CLAIM.finditer(PAGE)])
def test_named_tests_exist(file: str, name: str | None) -> None:
    text = (REPOSITORY / file).read_text()
    if name is None:
        assert "#[test]" in text
    else:
        assert re.search(rf"^\s*(async )?(def|fn|class) {name}\b", text, re.MULTILINE), f"{file} has no test {name}"

# SPDX-License-Identifier: Apache-2.0
"""Tests that the page on P4Runtime names existing tests, and that each requirement has one."""

import re

import pytest
from pages import REPOSITORY, sources

PAGE = REPOSITORY / "docs" / "p4runtime.md"
ROW = re.compile(r"^\| (?P<section>[^|]+) \| (?P<requirement>[^|]+) \| `(?P<test>\w+::\w+)` \|$")
FUNCTION = re.compile(r"#\[(?:tokio::)?test[^\]]*\]\s*(?:async )?fn (\w+)|^    fn (\w+)\($", re.MULTILINE)


def table_rows() -> list[str]:
    """Return the rows of the tables of requirements, without their heads."""
    text = PAGE.read_text().partition("\n## Requirements\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if not row.endswith("| requirement | test |")]


def rust_tests() -> set[str]:
    """Return all tests as MODULE::FUNCTION, where the module is a file, a folder of the file, or the crate."""
    found = set()
    for source in sources(".rs"):
        parts = source.relative_to(REPOSITORY).with_suffix("").parts
        if parts[0] == "softswitch":
            names = [next(filter(None, match)) for match in FUNCTION.findall(source.read_text())]
            found |= {f"{part}::{name}" for part in parts for name in names}
    return found


FUNCTIONS = rust_tests()


@pytest.mark.parametrize("row", table_rows())
def test_requirement_names_existing_test(row: str) -> None:
    match = ROW.match(row)
    assert match, "expected | SECTION | REQUIREMENT | `MODULE::TEST` |"
    assert match["test"] in FUNCTIONS


def test_page_lists_requirements_of_all_chapters() -> None:
    sections = [row.split("|")[1].strip() for row in table_rows()]
    chapters = {section.partition(".")[0] for section in sections}
    assert {str(chapter) for chapter in range(5, 18)} <= chapters
    assert len(sections) >= 144

# SPDX-License-Identifier: Apache-2.0
"""Tests that the types and tests that pages name exist."""

import re
from pathlib import Path

import pytest
from pages import PAGES, REPOSITORY, SPAN, sources

CAMEL_CASE = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
TEST = re.compile(r"test_\w+")
FOREIGN = {"UdpRcvbufErrors"}
"""Names of other projects, for example kernel counters."""
SOURCES = sources(".rs", ".py", ".p4", ".c", ".h", ".cc", ".go", ".mjs", ".yaml", ".yml", ".toml")


def existing() -> set[str]:
    """Return the words of all sources, and the names of the files."""
    words = {source.stem for source in SOURCES}
    for source in SOURCES:
        words.update(re.findall(r"\w+", source.read_text()))
    return words


WORDS = existing()


def unknown(page: str) -> list[str]:
    """Return the types and tests that a page names and that no source contains."""
    names = [name for name in SPAN.findall(page) if CAMEL_CASE.fullmatch(name) or TEST.fullmatch(name)]
    return [name for name in names if name not in WORDS | FOREIGN]


# The writing rules invent examples.
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "writing.md"], ids=lambda page: str(page.relative_to(REPOSITORY))
)
def test_named_types_and_tests_exist(page: Path) -> None:
    assert not unknown(page.read_text())


def test_unknown_names_are_detected() -> None:
    missing = ["Missing" + "Type", "test_" + "missing"]
    assert unknown(f"The tests `{missing[0]}` and `{missing[1]}` of `SmallDatagramsBeginNothing`.") == missing

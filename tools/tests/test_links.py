# SPDX-License-Identifier: Apache-2.0
"""Tests that the links of all pages resolve, and that the index of docs is complete."""

import re
from pathlib import Path

import pytest
from pages import REPOSITORY, anchors, folder, prose, sources

LINK = re.compile(r"\]\(([^)\s]+)\)")
DOCS = REPOSITORY / "docs"


@pytest.mark.parametrize("page", sources(".md"), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_resolve(page: Path) -> None:
    broken = []
    for link in LINK.findall(prose(page.read_text())):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = folder(page) / name if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_index_lists_every_page_of_docs() -> None:
    index = DOCS / "README.md"
    listed = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text())}
    missing = [str(page.relative_to(DOCS)) for page in sorted(DOCS.rglob("*.md")) if page not in listed | {index}]
    assert not missing

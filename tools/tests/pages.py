# SPDX-License-Identifier: Apache-2.0
"""Access to the Markdown pages of the repository: their files, links, anchors and code."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "docs" / "results"
BUILT = ("build", "target", "__pycache__", "node_modules")
SPAN = re.compile(r"`([^`\n]+)`")


def sources(*names: str) -> list[Path]:
    """Return the files of the repository whose names end with one of `names`, without build output and hidden files."""
    found = []
    for place, folders, files in os.walk(REPOSITORY):
        folders[:] = sorted(name for name in folders if name not in BUILT and not name.startswith("."))
        found += [Path(place, name) for name in sorted(files) if name.endswith(names)]
    return found


# The changelog names things that no longer exist.
PAGES = [page for page in sources(".md") if page.name != "CHANGELOG.md"]


def folder(page: Path) -> Path:
    """Return the folder that a page's relative links start from. The texts of figures become part of a page in docs/results."""
    parts = page.relative_to(REPOSITORY).parts
    is_part = parts[0] == "experiments" and len(parts) == 3 and any(page.parent.glob("*.yaml"))
    return RESULTS if is_part else page.parent


def prose(text: str) -> str:
    """Return a page without its code."""
    lines, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            lines.append(SPAN.sub("", line))
    return "\n".join(lines)


def code(text: str) -> Iterator[str]:
    """Yield the code spans and the lines of code blocks, with continuation lines joined."""
    fenced = False
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()
        else:
            yield from SPAN.findall(line)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    found, fenced = set(), False
    for line in page.read_text().splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (heading := re.match(r"#+ (.+)", line)):
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found

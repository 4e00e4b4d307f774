# SPDX-License-Identifier: Apache-2.0
"""Fills in the templates of generated pages, `docs/templates/*.md.in`.

A template consists of sections. Each begins with a line `<!-- NAME -->`, and its text has placeholders `$name`
(`string.Template`), so that the prose of a page stands beside the other documentation and not in a program.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from ..programs import REPOSITORY

TEMPLATES = REPOSITORY / "docs" / "templates"
_SECTION = re.compile(r"^<!-- ([a-z0-9-]+) -->\n", re.MULTILINE)


class PageTemplate:
    """The sections of one template, by name."""

    def __init__(self, name: str, folder: Path = TEMPLATES) -> None:
        """Read `folder/NAME.md.in`. Raises ValueError if text precedes the first section."""
        before, *parts = _SECTION.split((folder / f"{name}.md.in").read_text())
        if before.strip():
            raise ValueError(f"{name}.md.in: text before the first section: begin it with `<!-- NAME -->`")
        self._sections = {key: text.strip() for key, text in zip(parts[::2], parts[1::2], strict=True)}

    def section(self, name: str, **values: object) -> str:
        """Return a section with its placeholders replaced. Raises KeyError for a placeholder without a value."""
        texts = {key: str(value).rstrip("\n") for key, value in values.items()}
        return Template(self._sections[name]).substitute(texts)


def join(sections: list[str]) -> str:
    """Return the page: its sections with a blank line between, and one newline at the end."""
    return "\n\n".join(section for section in sections if section) + "\n"

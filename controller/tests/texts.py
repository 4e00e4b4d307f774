# SPDX-License-Identifier: Apache-2.0
"""Configuration texts: an example with a change, and the problems of an invalid text."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontage.config import ConfigError, loads


def replaced(text: str, old: str, new: str) -> str:
    """Replace the first occurrence of ``old``, which must exist."""
    assert old in text
    return text.replace(old, new, 1)


def edited(text: str, *changes: tuple[str, str]) -> str:
    """Replace the first occurrence of each old text, which must exist, by the new one."""
    for old, new in changes:
        text = replaced(text, old, new)
    return text


def problems(text: str, file: Path) -> list[str]:
    """Return the lines of the error that the text causes."""
    with pytest.raises(ConfigError) as caught:
        loads(text, file)
    return str(caught.value).splitlines()

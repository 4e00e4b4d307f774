"""Texts of configurations: an example with a change, and what is said of one that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontage.config import ConfigError, loads


def replaced(text: str, old: str, new: str) -> str:
    """Once, and it must be there."""
    assert old in text
    return text.replace(old, new, 1)


def problems(text: str, file: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loads(text, file)
    return str(caught.value).splitlines()

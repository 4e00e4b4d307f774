# SPDX-License-Identifier: Apache-2.0
"""Files with a list of TOML tables, such as tokens and certificates, each with a permission."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_entries(file: Path, name: str, error: type[Exception]) -> Iterator[tuple[str, Any]]:
    """Yield the tables ``[[name]]`` of a file, each with its place for messages, such as `FILE: token 2`. Raises ``error``."""
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8")).get(name, [])
    except (OSError, ValueError) as problem:
        raise error(f"{file}: cannot read {name}: {problem}") from None
    if not isinstance(entries, list):
        raise error(f"{file}: {name} must be tables: write [[{name}]] above each")
    for number, entry in enumerate(entries, start=1):
        yield f"{file}: {name.removesuffix('s')} {number}", entry

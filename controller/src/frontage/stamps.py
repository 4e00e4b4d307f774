# SPDX-License-Identifier: Apache-2.0
"""Stamps of files, which change whenever a file is written or replaced."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[int, int, int]


def stamp(file: Path) -> Stamp | None:
    """Return a value that changes whenever the file is written or replaced."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size

# SPDX-License-Identifier: Apache-2.0
"""A problem of a configuration, and helpers that find the commonest kinds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from frontage.config.document import Path

_MAX_NAMES = 8
"""Names that a fix lists."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem without its position. ``at_key`` means the position of the key rather than of the value."""

    path: Path
    what: str
    fix: str
    at_key: bool = False


def unknown(items: Iterable[tuple[Path, int]], known: Iterable[int], what: str) -> Iterator[Finding]:
    """Yield a finding for every number that is not ``known``; ``{}`` in ``what`` stands for the number."""
    numbers = sorted(set(known))
    for path, value in items:
        if value not in numbers:
            yield Finding(path, what.format(value), f"use one of: {', '.join(map(str, numbers))}")


def unknown_name(path: Path, noun: str, name: str, known: Iterable[str], section: str) -> Finding:
    """Return the finding that no item of ``section`` has this name."""
    names = ", ".join(list(known)[:_MAX_NAMES]) or "none is defined yet"
    return Finding(path, f'unknown {noun} "{name}"', f"use one of {section}: {names}")


def duplicates(items: Iterable[tuple[Path, Hashable]], what: str, fix: str) -> Iterator[Finding]:
    """Yield a finding for every value that an earlier item has; ``{}`` in ``what`` stands for the value."""
    seen: set[Hashable] = set()
    for path, value in items:
        if value in seen:
            yield Finding(path, what.format(value), fix)
        seen.add(value)

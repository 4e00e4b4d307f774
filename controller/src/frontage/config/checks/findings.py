"""A contradiction in a configuration, and how to look for the commonest kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from frontage.config.document import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem whose position is still to be looked up; ``at_key`` points at the field's name, not at its value."""

    path: Path
    what: str
    fix: str
    at_key: bool = False


def unknown(items: Iterable[tuple[Path, int]], known: Iterable[int], what: str) -> Iterator[Finding]:
    """Of those that are not ``known``."""
    numbers = sorted(set(known))
    for path, value in items:
        if value not in numbers:
            yield Finding(path, what.format(value), f"give one of: {', '.join(map(str, numbers))}")


def duplicates(items: Iterable[tuple[Path, Hashable]], what: str, fix: str) -> Iterator[Finding]:
    seen: set[Hashable] = set()
    for path, value in items:
        if value in seen:
            yield Finding(path, what.format(value), fix)
        seen.add(value)

"""The switch's state as plain values: what is installed, what is wanted, and the difference.

Tables are named by their last two parts (``vip.policy``), matches and parameters are integers, so that states of tens of
thousands of entries are built and compared quickly, and print readably.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

Match: TypeAlias = int | tuple[int, int]
"""An exact value, or (value, prefix length) of an LPM key."""


def exact(match: tuple[Match, ...]) -> tuple[int, ...]:
    """The values of a key of a table that has exact fields only."""
    return cast(tuple[int, ...], match)


class Key(NamedTuple):
    """One table entry; without matches, the table's default action."""

    table: str
    match: tuple[Match, ...]


class Action(NamedTuple):
    name: str
    params: tuple[int, ...] = ()


State: TypeAlias = dict[Key, Action]


@dataclass(frozen=True, slots=True)
class Difference:
    """What turns one state into another."""

    missing: State = field(default_factory=dict)
    different: State = field(default_factory=dict)
    unexpected: State = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.missing) + len(self.different) + len(self.unexpected)

    def by_table(self) -> Iterator[tuple[str, int, int, int]]:
        """(table, missing, different, unexpected) of each table that differs."""
        counts: dict[str, list[int]] = {}
        for i, part in enumerate((self.missing, self.different, self.unexpected)):
            for key in part:
                counts.setdefault(key.table, [0, 0, 0])[i] += 1
        for table in sorted(counts):
            missing, different, unexpected = counts[table]
            yield table, missing, different, unexpected


def difference(wanted: Mapping[Key, Action], installed: Mapping[Key, Action]) -> Difference:
    """What to insert, modify and delete so that ``installed`` becomes ``wanted``."""
    missing: State = {}
    different: State = {}
    for key, action in wanted.items():
        found = installed.get(key)
        if found is None:
            missing[key] = action
        elif found != action:
            different[key] = action
    unexpected = {key: action for key, action in installed.items() if key not in wanted}
    return Difference(missing, different, unexpected)

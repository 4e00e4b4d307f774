# SPDX-License-Identifier: Apache-2.0
"""Table entries as plain values, and the difference between two states.

Table names have the last two parts (``vip.policy``); matches and parameters are integers. So states of tens of thousands of
entries are fast to build and compare, and easy to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

Match: TypeAlias = int | tuple[int, int]
"""An exact value, or (value, prefix length) of an LPM key."""


def exact(match: tuple[Match, ...]) -> tuple[int, ...]:
    """Return the values of a key of a table with exact match fields only."""
    return cast(tuple[int, ...], match)


class Key(NamedTuple):
    """The key of a table entry; without match fields, the key of the table's default action."""

    table: str
    match: tuple[Match, ...]


class Action(NamedTuple):
    """The action of a table entry, and the rate and burst of its direct meter."""

    name: str
    params: tuple[int, ...] = ()
    meter: tuple[int, int] | None = None
    """Packets or bytes per second, and packets or bytes; None without a meter, or if it is not configured."""


State: TypeAlias = dict[Key, Action]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a wanted and an installed state."""

    missing: State = field(default_factory=dict)
    different: State = field(default_factory=dict)
    unexpected: State = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.missing) + len(self.different) + len(self.unexpected)

    def applied_to(self, state: Mapping[Key, Action]) -> State:
        """Return the state after the changes."""
        return {key: action for key, action in state.items() if key not in self.unexpected} | self.missing | self.different

    def by_table(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield (table, missing, different, unexpected) for each table with a difference."""
        counts: dict[str, list[int]] = {}
        for i, part in enumerate((self.missing, self.different, self.unexpected)):
            for key in part:
                counts.setdefault(key.table, [0, 0, 0])[i] += 1
        for table in sorted(counts):
            missing, different, unexpected = counts[table]
            yield table, missing, different, unexpected


def difference(wanted: Mapping[Key, Action], installed: Mapping[Key, Action]) -> Difference:
    """Return what to insert, modify and delete to turn ``installed`` into ``wanted``."""
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

# SPDX-License-Identifier: Apache-2.0
"""A row of docs/environments.md: an exercise of an environment, and the check that decides whether it passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stage import Stage


class RowError(Exception):
    """A failed check; the message is the reason in docs/environments.md."""


@dataclass(frozen=True)
class Row:
    name: str
    """ENVIRONMENT/EXERCISE, or ENVIRONMENT/EXERCISE/PART."""
    parts: tuple[str, ...]
    """Files and folders of the checkout that the exercise needs; the first one is its working folder."""
    check: str
    """The conditions under which the row passes, for docs/environments.md."""
    play: Callable[[Stage], None]
    """Run the exercise and raise `RowError` unless the check succeeds."""
    timeout: float = 600
    """Seconds after which the row is stopped and fails."""

    @property
    def environment(self) -> str:
        return self.name.split("/")[0]


def select(rows: Sequence[Row], only: str | None) -> list[Row]:
    """Return the rows with this name or below it; without a name, all.

    Raises ValueError if no row has it.
    """
    chosen = [row for row in rows if only is None or row.name == only or row.name.startswith(f"{only}/")]
    if not chosen:
        raise ValueError(f'unknown row "{only}": use one of {", ".join(row.name for row in rows)}')
    return chosen

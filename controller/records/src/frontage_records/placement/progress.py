# SPDX-License-Identifier: Apache-2.0
"""The progress of placement: the last epoch, and its moves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from frontage_records.placement.planner import Epoch, Move


@dataclass(slots=True)
class Progress:
    """The state of a placer that operators see."""

    sites: tuple[int, ...]
    """The ids of all sites."""
    epoch: Epoch | None = None
    """The last epoch."""
    error: str | None = None
    """The reason why the last epoch made no decision."""
    counts: Counter[str] = field(default_factory=Counter)
    """Moves by result: ``done`` or the code of the error."""
    bytes_moved: int = 0
    waiting: dict[str, Move] = field(default_factory=dict)
    """Decided moves that are not finished, in order of their gain."""
    results: dict[str, str] = field(default_factory=dict)
    """The result of each record's last move."""

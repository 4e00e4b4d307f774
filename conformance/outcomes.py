# SPDX-License-Identifier: Apache-2.0
"""Outcomes of checks, and whether they agree with the file of reasons for failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explained import FILE


@dataclass(frozen=True)
class Outcome:
    name: str
    passed: bool
    seen: str = ""
    """The observed failure, in one line."""


def surprises(outcomes: Sequence[Outcome], reasons: Mapping[str, str], complete: bool, file: str = FILE.name) -> list[str]:
    """Return the outcomes that contradict `file`, whose reasons are `reasons`.

    If the outcomes are `complete`, this includes reasons for samples without an outcome.
    """
    failed = {outcome.name: outcome.seen for outcome in outcomes if not outcome.passed}
    ran = {outcome.name for outcome in outcomes}
    unexplained = [f"{name}: {seen}" for name, seen in failed.items() if name not in reasons]
    stale = [name for name in reasons if name not in failed and (complete or name in ran)]
    return unexplained + [f"{name}: passes or no longer exists: remove it from {file}" for name in stale]

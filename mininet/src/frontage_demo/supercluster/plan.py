# SPDX-License-Identifier: Apache-2.0
"""The plan of a run, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frontage_records.ring import Ring, partition

from .history import Operation
from .load import CONTROLLERS

RECOVERY_TIMEOUT = 90.0
"""Seconds for the supercluster to recover, and for the sites to agree."""


class StormError(RuntimeError):
    """The scenario could not be run."""


@dataclass(frozen=True)
class Plan:
    """Parameters of a run."""

    rate: float
    """Operations per second, of all regions together."""
    hold: float
    """Duration in seconds of each failure, and of each quiet time between two."""
    records: int
    """Records for each consistency and home site."""
    seed: int


@dataclass(frozen=True)
class Phase:
    """A part of the run, with its begin and end in nanoseconds of the monotonic clock."""

    name: str
    begin: int
    end: int


@dataclass
class Result:
    """The result of a run."""

    operations: list[Operation]
    homes: Mapping[str, int]
    """The site that orders a record's writes, at the start."""
    phases: list[Phase] = field(default_factory=list)
    counts: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Failed operations, by site and error."""
    moves: list[str] = field(default_factory=list)
    """A line about each move and its outcome."""
    violations: list[str] = field(default_factory=list)


def choose(sites: Sequence[int], each: int) -> dict[str, int]:
    """Return GUIDs with their home sites. All records of a home are in one partition, so that there are as few Raft groups
    as sites.
    """
    ring = Ring(sites, CONTROLLERS)
    part = {site: next(p for p in range(1000) if ring.controllers(p)[0] == site) for site in sites}
    found: dict[str, int] = {}
    number = 0
    wanted = dict.fromkeys(sites, each)
    while any(wanted.values()):
        guid = f"record-{number}"
        number += 1
        for site in sites:
            if wanted[site] and partition(guid) == part[site]:
                found[guid] = site
                wanted[site] -= 1
    return found

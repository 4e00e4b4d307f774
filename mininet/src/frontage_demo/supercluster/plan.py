"""What a run shall do, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frontage_records.ring import Ring, partition

from .history import Operation
from .load import CONTROLLERS

PATIENCE = 90.0
"""Seconds for the supercluster to be whole again, and for the sites to agree."""


class StormError(RuntimeError):
    """The scenario could not be played."""


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    rate: float
    """Operations a second, of all regions together."""
    hold: float
    """Seconds that each failure lasts, and each quiet time between two."""
    records: int
    """Of each consistency and home site."""
    seed: int


@dataclass(frozen=True)
class Phase:
    """What happened, from when to when; nanoseconds of the monotonic clock."""

    name: str
    begin: int
    end: int


@dataclass
class Result:
    """What came of it."""

    operations: list[Operation]
    homes: Mapping[str, int]
    """The site that orders a record's writes, when all began."""
    phases: list[Phase] = field(default_factory=list)
    counts: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Operations that were not done, by site and error."""
    moves: list[str] = field(default_factory=list)
    """What became of each."""
    violations: list[str] = field(default_factory=list)


def choose(sites: Sequence[int], each: int) -> dict[str, int]:
    """GUIDs with their home sites: all of a home in one partition, so that there are as few Raft groups as sites."""
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

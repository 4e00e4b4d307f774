"""What a run's history says in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .history import NEVER, Operation
from .plan import Phase, Result

MS = 1e6
"""Nanoseconds of a millisecond."""


@dataclass(frozen=True)
class Times:
    """Some times, in milliseconds."""

    values: Sequence[float]
    """In their order."""

    def quantile(self, share: float) -> float:
        """0 if there are none."""
        return self.values[min(len(self.values) - 1, int(share * len(self.values)))] if self.values else 0.0


@dataclass(frozen=True)
class PhaseFigures:
    """How writers fared."""

    phase: Phase
    acknowledged: float
    """Writes a second."""
    latency: Times
    stalls: Mapping[tuple[int, bool], float]
    """The longest time, in seconds, without an acknowledged write to a home site's records: of clients there (True), or
    elsewhere.
    """


def phases(result: Result) -> list[PhaseFigures]:
    """Each phase's."""
    puts = sorted((one for one in _puts(result) if one.guid in result.homes), key=lambda one: one.end)
    sites = sorted(set(result.homes.values()))
    return [_phase(phase, puts, result.homes, sites) for phase in result.phases]


def _phase(phase: Phase, puts: Sequence[Operation], homes: Mapping[str, int], sites: Sequence[int]) -> PhaseFigures:
    some = [one for one in puts if phase.begin <= one.end < phase.end]
    stalls = {}
    for home in sites:
        for near in (True, False):
            ends = [one.end for one in some if homes[one.guid] == home and (one.site == home) is near]
            moments = [phase.begin, *ends, phase.end]
            stalls[home, near] = max(b - a for a, b in pairwise(moments)) / 1e9
    return PhaseFigures(phase, len(some) / ((phase.end - phase.begin) / 1e9), _times(_took(some)), stalls)


def quiet(result: Result, kind: str, consistency: str, site: int, home: int) -> Times:
    """How long operations of a site's clients took on records of a home site, while nothing failed or moved."""
    calm = [phase for phase in result.phases if phase.name == "quiet"]
    return _times(
        _took(
            one
            for one in result.operations
            if (one.kind, one.consistency, one.site, result.homes[one.guid]) == (kind, consistency, site, home)
            and one.version is not None
            and any(phase.begin <= one.begin and one.end < phase.end for phase in calm)
        )
    )


def propagation(result: Result, consistency: str, home: int, site: int) -> Times:
    """From when clients at a record's home began to write until a subscriber at another site saw it, in quiet times."""
    calm = [phase for phase in result.phases if phase.name == "quiet"]
    written = {
        one.value: one
        for one in _puts(result)
        if one.consistency == consistency
        and one.site == home == result.homes[one.guid]
        and any(phase.begin <= one.begin and one.end < phase.end for phase in calm)
    }
    seen: dict[str, int] = {}
    for one in result.operations:
        if one.kind == "seen" and one.site == site and one.value is not None and one.value in written:
            seen[one.value] = min(seen.get(one.value, NEVER), one.begin)
    return _times((at - written[value].begin) / MS for value, at in seen.items())


def _puts(result: Result) -> list[Operation]:
    return [one for one in result.operations if one.kind == "put" and one.version is not None]


def _took(operations: Iterable[Operation]) -> Iterable[float]:
    return ((one.end - one.begin) / MS for one in operations)


def _times(values: Iterable[float]) -> Times:
    return Times(sorted(values))

# SPDX-License-Identifier: Apache-2.0
"""Computes the page's figures from a run's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .history import NEVER, Operation
from .plan import Phase, Result

MS = 1e6
"""Nanoseconds per millisecond."""


@dataclass(frozen=True)
class Times:
    """Durations in milliseconds."""

    values: Sequence[float]
    """In ascending order."""

    def quantile(self, share: float) -> float:
        """Return a quantile; 0 without values."""
        return self.values[min(len(self.values) - 1, int(share * len(self.values)))] if self.values else 0.0


@dataclass(frozen=True)
class PhaseFigures:
    """The writers' observations in a phase."""

    phase: Phase
    acknowledged: float
    """Acknowledged writes per second."""
    latency: Times
    stalls: Mapping[tuple[int, bool], float]
    """Longest time in seconds without an acknowledged write to the records of a home site, by home site and whether the
    clients are at the home (True) or elsewhere.
    """


def phases(result: Result) -> list[PhaseFigures]:
    """Return the figures of each phase."""
    puts = sorted((put for put in _puts(result) if put.guid in result.homes), key=lambda put: put.end)
    sites = sorted(set(result.homes.values()))
    return [_phase(phase, puts, result.homes, sites) for phase in result.phases]


def _phase(phase: Phase, puts: Sequence[Operation], homes: Mapping[str, int], sites: Sequence[int]) -> PhaseFigures:
    inside = [put for put in puts if phase.begin <= put.end < phase.end]
    stalls = {}
    for home in sites:
        for near in (True, False):
            ends = [put.end for put in inside if homes[put.guid] == home and (put.site == home) is near]
            bounds = [phase.begin, *ends, phase.end]
            stalls[home, near] = max(b - a for a, b in pairwise(bounds)) / 1e9
    return PhaseFigures(phase, len(inside) / ((phase.end - phase.begin) / 1e9), _times(_durations(inside)), stalls)


def quiet(result: Result, kind: str, consistency: str, site: int, home: int) -> Times:
    """Return the durations of operations by a site's clients on records of a home site in the quiet phase."""
    calm = [phase for phase in result.phases if phase.name == "quiet"]
    return _times(
        _durations(
            operation
            for operation in result.operations
            if (operation.kind, operation.consistency, operation.site, result.homes[operation.guid])
            == (kind, consistency, site, home)
            and operation.version is not None
            and any(phase.begin <= operation.begin and operation.end < phase.end for phase in calm)
        )
    )


def propagation(result: Result, consistency: str, home: int, site: int) -> Times:
    """Return the times from the start of a write at the record's home until a subscriber at `site` saw it, in the quiet
    phase.
    """
    calm = [phase for phase in result.phases if phase.name == "quiet"]
    written = {
        put.value: put
        for put in _puts(result)
        if put.consistency == consistency
        and put.site == home == result.homes[put.guid]
        and any(phase.begin <= put.begin and put.end < phase.end for phase in calm)
    }
    seen: dict[str, int] = {}
    for operation in result.operations:
        if operation.kind == "seen" and operation.site == site and operation.value is not None and operation.value in written:
            seen[operation.value] = min(seen.get(operation.value, NEVER), operation.begin)
    return _times((at - written[value].begin) / MS for value, at in seen.items())


def _puts(result: Result) -> list[Operation]:
    return [operation for operation in result.operations if operation.kind == "put" and operation.version is not None]


def _durations(operations: Iterable[Operation]) -> Iterable[float]:
    return ((operation.end - operation.begin) / MS for operation in operations)


def _times(values: Iterable[float]) -> Times:
    return Times(sorted(values))

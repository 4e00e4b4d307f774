# SPDX-License-Identifier: Apache-2.0
"""Load reports: when a site reports the demand that it sees, and what a report contains (Auspice, sections 1.2 and 1.2.5).

A site sends at most one report of a service per m handshakes, so that reports are a known share of the handshakes. A report contains
the sparse vector of handshakes by region if they come from other regions than in the last vector. It also does if the new vector
rests on at least four times as many handshakes. Otherwise the report contains the rate alone.

If fewer than half of the expected handshakes arrive, a report is due after the time in which m handshakes were expected. When
demand ends, this gives one report each time that the rate halves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from frontage.mapping.demand.counters import RegionCounts
from frontage.mapping.placement.policy import Policy, moved

_SAMPLE_GROWTH = 4
"""How many times the handshakes of the last vector a new vector must rest on: four times as many halve the error."""
_NOISE_DEVIATIONS = 3.0
"""Standard deviations above the mean. Noise exceeds this in at most one of twenty comparisons."""


@dataclass(frozen=True, slots=True)
class Report:
    """One site's report of one service."""

    service: str
    requests: int
    """Handshakes since the last report."""
    seconds: float
    """Time since the last report."""
    regions: Mapping[int, int] | None
    """Handshakes by region, possibly those of earlier reports included; None if they come from the same regions as before."""

    @property
    def rate(self) -> float:
        """Handshakes per second."""
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class SiteReports:
    """The sum of one site's reports of one service."""

    regions: Mapping[int, float]
    """Handshakes by region in the last report that had regions."""
    rate: float
    """Handshakes per second in the last report."""
    requests: int
    """Handshakes in all reports so far."""
    seconds: float
    """Time that all reports cover."""
    reports: int
    """Number of reports so far."""


@dataclass(slots=True)
class _Service:
    seconds: float = 0.0
    requests: RegionCounts = field(default_factory=dict)
    """Handshakes since the last report."""
    last: Report | None = None
    regions: RegionCounts = field(default_factory=dict)
    """The last vector that was reported."""
    similar: RegionCounts = field(default_factory=dict)
    """Handshakes reported since that vector, without regions, because they came from the same ones."""


class Reporter:
    """Decides when one site reports which service."""

    def __init__(self, policy: Policy):
        self.policy = policy
        self._services: dict[str, _Service] = {}

    def count(self, service: str, regions: RegionCounts, seconds: float) -> None:
        """Add the handshakes of the last ``seconds``."""
        state = self._services.setdefault(service, _Service())
        state.seconds += seconds
        for region, requests in regions.items():
            state.requests[region] = state.requests.get(region, 0) + requests

    def due(self) -> list[Report]:
        """Return the reports to send now. A report stays due until `acknowledge` confirms it."""
        return [report for name, state in self._services.items() if (report := self._report(name, state)) is not None]

    def acknowledge(self, report: Report) -> None:
        """Note that a report was stored."""
        state = self._services[report.service]
        if report.regions is not None:
            state.regions, state.similar = dict(report.regions), {}
        else:
            state.similar = _add(state.similar, state.requests)
        state.last, state.seconds, state.requests = report, 0.0, {}

    def _report(self, name: str, state: _Service) -> Report | None:
        requests = sum(state.requests.values())
        expected = state.last.rate * state.seconds if state.last is not None else 0.0
        has_dropped = expected >= self.policy.requests and requests <= expected / 2
        if state.seconds <= 0 or not (requests >= self.policy.requests or has_dropped):
            return None
        regions = None
        if state.last is None or _has_moved(state.regions, state.requests, self.policy):
            regions = state.requests
        elif (similar := _add(state.similar, state.requests)) and (
            sum(similar.values()) >= _SAMPLE_GROWTH * sum(state.regions.values()) or _has_moved(state.regions, similar, self.policy)
        ):
            regions = similar
        return Report(name, requests, state.seconds, regions)


def _add(one: RegionCounts, other: RegionCounts) -> RegionCounts:
    return {region: one.get(region, 0) + other.get(region, 0) for region in one.keys() | other.keys()}


def _has_moved(before: RegionCounts, now: RegionCounts, policy: Policy) -> bool:
    """Return whether the share of handshakes from other regions exceeds the policy's threshold by more than noise."""
    if not sum(now.values()):
        return False
    regions = sorted(before.keys() | now.keys())
    old, new = ([counts.get(region, 0) for region in regions] for counts in (before, now))
    return bool(moved([old], [new])[0] >= policy.moved + noise_threshold(before, now))


def noise_threshold(before: RegionCounts, now: RegionCounts) -> float:
    """Return the share of handshakes that may seem to come from other regions although nothing has moved.

    The compared value is half the sum over regions of the absolute difference of two binomial shares. With the normal approximation
    of those differences, the threshold is its mean plus three standard deviations.
    """
    samples = sum(before.values()), sum(now.values())
    if not all(samples):
        return 0.0
    total = _add(before, now)
    shares = [count / sum(samples) for count in total.values()]
    scale = sum(1 / size for size in samples)
    deviations = [math.sqrt(share * (1 - share) * scale) for share in shares]
    mean = sum(deviations) / math.sqrt(2 * math.pi)
    deviation = math.sqrt(sum(value * value for value in deviations) * (1 - 2 / math.pi)) / 2
    return mean + _NOISE_DEVIATIONS * deviation

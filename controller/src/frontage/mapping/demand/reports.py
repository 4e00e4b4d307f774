"""When a site tells of the demand that it sees, and of what of it (Auspice, 1.2 and 1.2.5).

At most once per m handshakes for a service, so that reports are a known share of these; and in the sparse vector of its regions
only if they come from elsewhere than it told last, or if that rests on a quarter of what came since: else the rate alone is news.
Where less than half of what the last report promised comes, m handshakes of its promise are time enough to say so: of a demand that
ends, that is one report for each time that it halves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from frontage.mapping.demand.counters import Regions
from frontage.mapping.placement.policy import Policy, moved

_SHARPER = 4
"""Times as many handshakes as the last vector's halve its error."""
_CHANCE = 3.0
"""Standard deviations from the mean: what is beyond that is chance once in twenty times, or less."""


@dataclass(frozen=True, slots=True)
class Report:
    """Of one service at one site."""

    service: str
    requests: int
    """Handshakes since the last report."""
    seconds: float
    """In so many seconds."""
    regions: Mapping[int, int] | None
    """Handshakes by region, these or more of before; None where they come from where the last ones did."""

    @property
    def rate(self) -> float:
        """Handshakes a second."""
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Told:
    """What the reports of one site say of one service."""

    regions: Mapping[int, float]
    """Handshakes by region, when these last moved."""
    rate: float
    """Handshakes a second in the last report."""
    requests: int
    """Handshakes that reports told of so far."""
    seconds: float
    """In which these came."""
    reports: int
    """So far."""


@dataclass(slots=True)
class _Service:
    seconds: float = 0.0
    requests: Regions = field(default_factory=dict)
    """Since the last report."""
    told: Report | None = None
    regions: Regions = field(default_factory=dict)
    """As told last."""
    like: Regions = field(default_factory=dict)
    """What was reported since, and came from where those did."""


class Reporter:
    """One site's."""

    def __init__(self, policy: Policy):
        self.policy = policy
        self._services: dict[str, _Service] = {}

    def count(self, service: str, regions: Regions, seconds: float) -> None:
        """Handshakes of so many seconds."""
        one = self._services.setdefault(service, _Service())
        one.seconds += seconds
        for region, requests in regions.items():
            one.requests[region] = one.requests.get(region, 0) + requests

    def due(self) -> list[Report]:
        """What is to be told now; again and again, until `told` says that it was."""
        return [report for name, one in self._services.items() if (report := self._report(name, one)) is not None]

    def told(self, report: Report) -> None:
        one = self._services[report.service]
        if report.regions is not None:
            one.regions, one.like = dict(report.regions), {}
        else:
            one.like = _sum(one.like, one.requests)
        one.told, one.seconds, one.requests = report, 0.0, {}

    def _report(self, name: str, one: _Service) -> Report | None:
        requests = sum(one.requests.values())
        expected = one.told.rate * one.seconds if one.told is not None else 0.0
        fewer = expected >= self.policy.requests and requests <= expected / 2
        if one.seconds <= 0 or not (requests >= self.policy.requests or fewer):
            return None
        regions = None
        if one.told is None or _moved(one.regions, one.requests, self.policy):
            regions = one.requests
        elif (like := _sum(one.like, one.requests)) and (
            sum(like.values()) >= _SHARPER * sum(one.regions.values()) or _moved(one.regions, like, self.policy)
        ):
            regions = like
        return Report(name, requests, one.seconds, regions)


def _sum(some: Regions, more: Regions) -> Regions:
    return {region: some.get(region, 0) + more.get(region, 0) for region in some.keys() | more.keys()}


def _moved(before: Regions, now: Regions, policy: Policy) -> bool:
    """Whether so many handshakes come from elsewhere, beyond what chance would do."""
    if not sum(now.values()):
        return False
    places = sorted(before.keys() | now.keys())
    was, found = ([counts.get(region, 0) for region in places] for counts in (before, now))
    return bool(moved([was], [found])[0] >= policy.moved + chance(before, now))


def chance(before: Regions, now: Regions) -> float:
    """The share that may seem to come from elsewhere although nothing has moved: half the sum over regions of the absolute
    differences of two binomial shares, as a normal distribution has them: their mean, and three standard deviations more."""
    samples = sum(before.values()), sum(now.values())
    if not all(samples):
        return 0.0
    together = _sum(before, now)
    shares = [count / sum(samples) for count in together.values()]
    scale = sum(1 / one for one in samples)
    deviations = [math.sqrt(share * (1 - share) * scale) for share in shares]
    mean = sum(deviations) / math.sqrt(2 * math.pi)
    deviation = math.sqrt(sum(one * one for one in deviations) * (1 - 2 / math.pi)) / 2
    return mean + _CHANCE * deviation

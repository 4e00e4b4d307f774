"""When a site tells of the demand that it sees, and of what of it (Auspice, 1.2 and 1.2.5).

At most once per m handshakes for a service, so that reports are a known share of these; and in the sparse vector of its regions
only if they come from elsewhere than it told last: else the rate alone is news. Where fewer come than the last report promised, m
handshakes of its promise are time enough to say so; if still fewer come, four times as many, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from frontage.demand.counters import Regions
from frontage.placement.policy import Policy, moved


@dataclass(frozen=True, slots=True)
class Report:
    """Of one service at one site."""

    service: str
    requests: int
    """Handshakes since the last report."""
    seconds: float
    """In so many seconds."""
    regions: Mapping[int, float] | None
    """Handshakes a second by region; None where they come from where the last ones did."""

    @property
    def rate(self) -> float:
        """Handshakes a second."""
        return self.requests / self.seconds


@dataclass(slots=True)
class _Service:
    seconds: float = 0.0
    requests: Regions = field(default_factory=dict)
    """Since the last report."""
    told: Report | None = None
    patience: int = 1
    """In m handshakes of what was promised."""
    regions: Mapping[int, float] = field(default_factory=dict)
    """As told last."""
    samples: int = 0
    """Handshakes that these are of."""


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
            one.regions, one.samples = report.regions, report.requests
        one.patience = 1 if report.requests >= self.policy.requests else 4 * one.patience
        one.told, one.seconds, one.requests = report, 0.0, {}

    def _report(self, name: str, one: _Service) -> Report | None:
        requests = sum(one.requests.values())
        expected = one.told.rate * one.seconds if one.told is not None else 0.0
        enough = requests >= self.policy.requests or expected >= self.policy.requests * one.patience
        if one.seconds <= 0 or not enough:
            return None
        rates = {region: count / one.seconds for region, count in one.requests.items()}
        places = sorted(rates.keys() | one.regions.keys())
        before, now = ([vector.get(region, 0.0) for region in places] for vector in (one.regions, rates))
        samples = requests, one.samples
        elsewhere = one.told is None or (
            requests > 0 and moved([before], [now])[0] >= self.policy.moved + noise(list(one.requests.values()), *samples)
        )
        return Report(name, requests, one.seconds, rates if elsewhere else None)


def noise(counts: list[int], now: int, before: int) -> float:
    """The share that seems to come from elsewhere although nothing has moved, on average: of ``now`` handshakes, so many from each
    region, against ``before`` others. Half the mean absolute difference of two binomial shares, region by region, as a normal
    distribution has it."""
    if not now or not before:
        return 0.0
    spread = sum(math.sqrt(share * (1 - share)) for count in counts if (share := count / now))
    return spread * math.sqrt((1 / now + 1 / before) / (2 * math.pi))

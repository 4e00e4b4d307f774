# SPDX-License-Identifier: Apache-2.0
"""The results of each scenario, saved as JSON so that the page can be rewritten without measuring."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from frontage_testbed.wan.latency import Latencies

from .distances import least
from .events import Try
from .failover import Failover
from .mappingstore import Rtt
from .measure import Sample
from .scenarios import AUTHORITY, SCENARIOS, Scenario, extra
from .testbed import ArtemisTestbed

FAR = 50.0
"""Milliseconds that no cached answer takes."""


@dataclass(frozen=True)
class Result:
    """The results of one scenario."""

    name: str
    seed: int
    rounds: int
    startup: Mapping[str, float]
    """Seconds for each step of the start-up."""
    suboptimal: float
    """Share of the clients that anycast leads away from their best site."""
    extra: float
    """Mean over all clients of the additional milliseconds."""
    least: Mapping[str, tuple[float, float]]
    """Mean set-up and query latency by method, in ms, from distances alone."""
    samples: tuple[Sample, ...]

    @classmethod
    def of(cls, testbed: ArtemisTestbed, seed: int, rounds: int, samples: Sequence[Sample]) -> Result:
        """Return the results of a running testbed."""
        best = {location: testbed.nearest(location)[0] for location in testbed.scenario.clients.values()}
        wrong = sum(testbed.routes[location] != site for location, site in best.items())
        return cls(
            testbed.scenario.name,
            seed,
            rounds,
            dict(testbed.startup),
            wrong / len(best),
            extra(testbed.latencies, best, testbed.routes),
            least(testbed.latencies, testbed.scenario, testbed.routes),
            tuple(samples),
        )

    @property
    def scenario(self) -> Scenario:
        """The measured scenario."""
        return SCENARIOS[self.name]

    def rank(self, sample: Sample) -> int:
        """Return how many sites are nearer to the client than the one that answered."""
        location = self.scenario.clients[sample.client]
        return Latencies.published().by_distance(location, self.scenario.sites).index(sample.site)

    def asked(self, sample: Sample) -> bool:
        """Return whether a name that was planned as cached took as long as a distant query."""
        far = Latencies.published().rtt(self.scenario.clients[sample.client], AUTHORITY)
        return bool(sample.hit) and sample.resolution >= far > FAR

    def by(self, method: str) -> list[Sample]:
        """Return the samples of a method without redundancy."""
        return [sample for sample in self.samples if sample.method == method and sample.redundancy == 1]


def mean(values: Iterable[float]) -> float:
    """Return the mean of at least one number."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


def save(results: Iterable[Result], file: Path) -> None:
    """Write results to a file."""
    file.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


def save_tries(tries: Iterable[Try], file: Path) -> None:
    """Write the attempts of `events` to a file."""
    file.write_text(json.dumps([asdict(attempt) for attempt in tries], indent=1) + "\n")


def read_tries(file: Path) -> list[Try]:
    """Read what `save_tries` wrote."""
    return [Try(**entry) for entry in json.loads(file.read_text())]


def save_failover(seen: Failover, file: Path) -> None:
    """Write the observations of `failover` to a file."""
    file.write_text(json.dumps(asdict(seen), indent=1) + "\n")


def read_failover(file: Path) -> Failover:
    """Read what `save_failover` wrote."""
    seen = json.loads(file.read_text())
    return Failover(**{**seen, "rtts": tuple(Rtt(**rtt) for rtt in seen["rtts"])})


def read_clients(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """Read what `clients/artemis.py` wrote, by client; empty if it has not run."""
    rows: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    return rows


def read(file: Path) -> list[Result]:
    """Read what `save` wrote."""
    results = json.loads(file.read_text())
    return [
        Result(
            **r
            | {"least": {method: tuple(times) for method, times in r["least"].items()}}
            | {"samples": tuple(Sample(**s) for s in r["samples"])}
        )
        for r in results
    ]

"""What was measured in a scenario, kept as JSON so that the page can be written again."""

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
"""Milliseconds that no answer out of a cache takes."""


@dataclass(frozen=True)
class Result:
    """One scenario's."""

    name: str
    seed: int
    rounds: int
    startup: Mapping[str, float]
    """Seconds that each step of coming up took."""
    suboptimal: float
    """Share of the clients that anycast does not lead to their best site."""
    extra: float
    """Mean over all clients of the milliseconds that this costs."""
    least: Mapping[str, tuple[float, float]]
    """Mean set-up and query latency by way, milliseconds, if nothing but distances took time."""
    samples: tuple[Sample, ...]

    @classmethod
    def of(cls, testbed: ArtemisTestbed, seed: int, rounds: int, samples: Sequence[Sample]) -> Result:
        """Of a testbed that is up."""
        best = {place: testbed.nearest(place)[0] for place in testbed.scenario.clients.values()}
        wrong = sum(testbed.routes[place] != site for place, site in best.items())
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
        """Where it was measured."""
        return SCENARIOS[self.name]

    def rank(self, sample: Sample) -> int:
        """How many sites are nearer to the client than the one that answered it."""
        place = self.scenario.clients[sample.client]
        return Latencies.published().by_distance(place, self.scenario.sites).index(sample.site)

    def asked(self, sample: Sample) -> bool:
        """Whether a name that was to be in the resolver's cache took as long as one that is not, where that is long."""
        far = Latencies.published().rtt(self.scenario.clients[sample.client], AUTHORITY)
        return bool(sample.hit) and sample.resolution >= far > FAR

    def by(self, way: str) -> list[Sample]:
        """The samples of a way of finding servers, without redundancy."""
        return [sample for sample in self.samples if sample.way == way and sample.redundancy == 1]


def mean(values: Iterable[float]) -> float:
    """Of at least one number."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


def save(results: Iterable[Result], file: Path) -> None:
    """Write them all."""
    file.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


def save_tries(tries: Iterable[Try], file: Path) -> None:
    """Write what `events` saw."""
    file.write_text(json.dumps([asdict(one) for one in tries], indent=1) + "\n")


def read_tries(file: Path) -> list[Try]:
    """What `save_tries` wrote."""
    return [Try(**one) for one in json.loads(file.read_text())]


def save_failover(seen: Failover, file: Path) -> None:
    """Write what `failover` saw."""
    file.write_text(json.dumps(asdict(seen), indent=1) + "\n")


def read_failover(file: Path) -> Failover:
    """What `save_failover` wrote."""
    seen = json.loads(file.read_text())
    return Failover(**{**seen, "rtts": tuple(Rtt(**rtt) for rtt in seen["rtts"])})


def read_clients(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """What `clients/artemis.py` wrote, by client; nothing if it did not run."""
    rows: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    return rows


def read(file: Path) -> list[Result]:
    """What `save` wrote."""
    results = json.loads(file.read_text())
    return [
        Result(
            **r
            | {"least": {way: tuple(times) for way, times in r["least"].items()}}
            | {"samples": tuple(Sample(**s) for s in r["samples"])}
        )
        for r in results
    ]

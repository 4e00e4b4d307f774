# SPDX-License-Identifier: Apache-2.0
"""The web-search workload: flow sizes of the DCTCP paper with Poisson arrivals.

The size distribution comes from the query and background traffic of a web-search cluster, published in M. Alizadeh et
al., "Data Center TCP (DCTCP)", SIGCOMM 2010, and tabulated by later papers; `data/websearch_cdf.csv` holds the table.

Objects are files, so their sizes come from a finite set. The distribution is divided into `SIZES` slices of equal
probability, and the mean of each slice represents it. The mean flow size, and so the load, is therefore exact, and no
quantile is off by more than one slice.
"""

from __future__ import annotations

import csv
import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from importlib import resources
from pathlib import Path

from .protocols import Framing

SIZES = 100
SHORT_FLOW = 100_000
"""Largest short flow, in bytes of the workload (before scaling): CloudCookie, section V-A."""
LONG_FLOW = 1_000_000
"""Flows above this size are long."""

CLOSINGS = (("fin", 0.2), ("rst", 0.4), ("idle", 0.4))
"""How clients end their connections, with probabilities.

Fewer than 20 % of the sites measured in CloudCookie (section IV-B, figure 5) see a FIN. The paper does not split the
rest; here half of it is reset, and half stays open and silent until the end of the run.
"""


@dataclass(frozen=True)
class Arrival:
    """One request of the plan."""

    index: int
    time: float
    """Seconds since the start of the run."""
    client: int
    size: int
    """The flow's size in the workload, bytes."""
    wire_size: int
    """Size of the object that the client fetches: `size` times the run's scale, at least 1 byte."""
    closing: str
    """How the client ends the connection after the response: fin, rst or idle."""


@dataclass(frozen=True)
class Cdf:
    """A piecewise linear distribution of flow sizes: ascending (bytes, cumulative probability) points from 0 to 1."""

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        probabilities = [p for _, p in self.points]
        sizes = [s for s, _ in self.points]
        if len(self.points) < 2 or probabilities[0] != 0 or probabilities[-1] != 1:
            raise ValueError("the probabilities of a CDF must start at 0 and end at 1")
        if any(b < a for a, b in itertools.pairwise(probabilities)) or any(b < a for a, b in itertools.pairwise(sizes)):
            raise ValueError("the points of a CDF must not decrease")

    def mean_between(self, low: float, high: float) -> float:
        """Return the mean size of the flows between two quantiles."""
        total = 0.0
        for (s0, p0), (s1, p1) in itertools.pairwise(self.points):
            a, b = max(p0, low), min(p1, high)
            if a < b:
                slope = (s1 - s0) / (p1 - p0)
                total += (b - a) * (s0 + slope * ((a + b) / 2 - p0))
        return total / (high - low)

    def mean(self) -> float:
        """Return the mean flow size in bytes."""
        return self.mean_between(0, 1)

    def representatives(self, count: int = SIZES) -> list[int]:
        """Return the means of `count` slices of equal probability, in whole bytes."""
        return [max(1, round(self.mean_between(k / count, (k + 1) / count))) for k in range(count)]


def load_cdf(path: Path | None = None) -> Cdf:
    """Read a CDF from a CSV file with columns `bytes,cdf` and `#` comments; by default the web-search workload's."""
    if path is None:
        text = resources.files("frontage_testbed.load").joinpath("data/websearch_cdf.csv").read_text()
    else:
        text = path.read_text()
    rows = csv.DictReader(line for line in text.splitlines() if line and not line.startswith("#"))
    return Cdf(tuple((float(row["bytes"]), float(row["cdf"])) for row in rows))


def scaled(size: int, scale: float) -> int:
    """Return the size of the object that represents a flow of `size` bytes."""
    return max(1, round(size * scale))


def arrival_rate(sizes: Sequence[int], scale: float, load: float, rate: float, framing: Framing) -> float:
    """Return the requests per second that load a link of `rate` bit/s to the share `load`."""
    mean = sum(framing.bytes_on_link(scaled(s, scale)) for s in sizes) / len(sizes)
    return load * rate / (8 * mean)


def plan(*, seed: int, seconds: float, load: float, rate: float, scale: float, clients: int, framing: Framing) -> list[Arrival]:
    """Return the arrivals of one run. Equal arguments give equal plans on every machine.

    Only `random()` is drawn, because Python guarantees its sequence for a seed.
    """
    rng = random.Random(seed)
    sizes = load_cdf().representatives()
    per_second = arrival_rate(sizes, scale, load, rate, framing)
    arrivals: list[Arrival] = []
    now = 0.0
    while True:
        now += -math.log(1.0 - rng.random()) / per_second
        if now >= seconds:
            return arrivals
        size = sizes[int(rng.random() * len(sizes))]
        client = int(rng.random() * clients)
        arrivals.append(Arrival(len(arrivals), round(now, 6), client, size, scaled(size, scale), _closing(rng.random())))


def _closing(draw: float) -> str:
    for name, share in CLOSINGS:
        if draw < share:
            return name
        draw -= share
    return CLOSINGS[-1][0]


def offered_load(arrivals: Iterable[Arrival], seconds: float, rate: float, framing: Framing) -> float:
    """Return the load that the drawn arrivals offer; with few flows of a heavy tail it differs from the requested one."""
    return sum(framing.bytes_on_link(a.wire_size) for a in arrivals) * 8 / (seconds * rate)


def write_plan(arrivals: Iterable[Arrival], path: Path) -> None:
    """Write the plan as CSV, one arrival per line."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(f.name for f in fields(Arrival))
        writer.writerows(astuple(a) for a in arrivals)


def read_plan(path: Path) -> list[Arrival]:
    """Read a plan that `write_plan` wrote."""
    with path.open(newline="") as file:
        return [
            Arrival(int(r["index"]), float(r["time"]), int(r["client"]), int(r["size"]), int(r["wire_size"]), r["closing"])
            for r in csv.DictReader(file)
        ]

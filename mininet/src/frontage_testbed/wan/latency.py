# SPDX-License-Identifier: Apache-2.0
"""Round-trip times between locations from a published matrix."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Latencies:
    """Round-trip times in milliseconds. Locations are codes of cloud regions."""

    locations: tuple[str, ...]
    _rtt: Mapping[tuple[str, str], float]

    @classmethod
    def published(cls) -> Latencies:
        """Return the matrix in `data/latency.csv`, whose header names the source."""
        text = resources.files("frontage_testbed.wan").joinpath("data/latency.csv").read_text()
        return cls.parse(text.splitlines())

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Latencies:
        """Parse a square matrix in CSV: one row per source below a row of destinations; `#` begins a comment.

        Raises ValueError.
        """
        head, *rows = csv.reader(line for line in lines if line and not line.startswith("#"))
        locations = tuple(head[1:])
        if tuple(row[0] for row in rows) != locations or any(len(row) != len(head) for row in rows):
            raise ValueError(f"rows and columns must name the same locations: {', '.join(locations)}")
        times = {(row[0], to): float(text) for row in rows for to, text in zip(locations, row[1:], strict=True)}
        if bad := [pair for pair, time in times.items() if time <= 0]:
            raise ValueError(f"the time between {bad[0][0]} and {bad[0][1]} must be positive")
        return cls(locations, times)

    def rtt(self, a: str, b: str) -> float:
        """Return the round-trip time between two locations in milliseconds: the mean of both directions."""
        return (self._rtt[a, b] + self._rtt[b, a]) / 2

    def by_distance(self, location: str, sites: Iterable[str]) -> list[str]:
        """Return the sites in order of their distance from `location`."""
        return sorted(sites, key=lambda site: (self.rtt(location, site), site))

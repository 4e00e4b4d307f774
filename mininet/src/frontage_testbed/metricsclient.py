# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus endpoints."""

from __future__ import annotations

import re
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:]\w*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Sample:
    """One value of a metric."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Scrape:
    """One reading of an endpoint."""

    samples: tuple[Sample, ...]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's values with these labels; 0 without values."""
        return sum(s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items())

    def by(self, label: str, name: str) -> dict[str, int]:
        """Return the sums of a metric's values, by the values of one label."""
        totals: Counter[str] = Counter()
        for sample in self.samples:
            if sample.name == name and label in sample.labels:
                totals[sample.labels[label]] += int(sample.value)
        return dict(totals)


def parse(text: str) -> Scrape:
    """Parse the subset of the Prometheus text format that our programs write."""
    return Scrape(
        tuple(Sample(s["name"], dict(LABEL.findall(s["labels"] or "")), float(s["value"])) for s in SAMPLE.finditer(text))
    )


def scrape(address: str, timeout: float = 5.0) -> Scrape:
    """Read the endpoint at `host:port`. Raises OSError if it does not answer."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=timeout) as response:
        return parse(response.read().decode())

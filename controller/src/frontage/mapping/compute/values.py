# SPDX-License-Identifier: Apache-2.0
"""The input and the output of the computation: measurements and changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from frontage.mapping.compute.choices import Choice
from frontage.mapping.compute.latency import Rtts
from frontage.mapping.compute.prefixes import Prefix, Rows

Sites = tuple[int, ...]
"""Site ids, best first."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An RTT between a client prefix and a site in microseconds, from ``count`` measurements."""

    prefix: Prefix
    site: int
    rtt_us: float
    count: int = 1
    source: str = "passive"


@dataclass(frozen=True, slots=True)
class Measurements:
    """Cells of the latency matrix: ``rtts[i]`` microseconds from ``prefixes[rows[i]]`` to ``sites[i]``; NaN removes the cell."""

    prefixes: Sequence[Prefix]
    rows: Rows
    sites: Rows
    rtts: Rtts

    @classmethod
    def of(cls, cells: Mapping[tuple[Prefix, int], float]) -> Measurements:
        """Build measurements from RTTs by prefix and site."""
        prefixes = list(dict.fromkeys(prefix for prefix, _ in cells))
        number = {prefix: i for i, prefix in enumerate(prefixes)}
        return cls(
            prefixes,
            np.fromiter((number[prefix] for prefix, _ in cells), np.int64, len(cells)),
            np.fromiter((site for _, site in cells), np.int64, len(cells)),
            np.fromiter(cells.values(), np.float32, len(cells)),
        )

    @property
    def cells(self) -> dict[tuple[Prefix, int], float]:
        """RTTs by prefix and site; for small numbers of cells."""
        numbers = zip(self.rows.tolist(), self.sites.tolist(), self.rtts.tolist(), strict=True)
        return {(self.prefixes[row], site): rtt for row, site, rtt in numbers}

    def at(self, sites: Iterable[int]) -> Measurements:
        """Return the measurements of these sites only."""
        kept = np.isin(self.sites, list(sites))
        return self if kept.all() else Measurements(self.prefixes, self.rows[kept], self.sites[kept], self.rtts[kept])


@dataclass(slots=True)
class Changes:
    """The change from one state of the tables to the next."""

    clients: dict[Prefix, int] = field(default_factory=dict)
    """Regions by client prefix; 0 removes the entry."""
    mapping: list[tuple[int, Rows, Choice]] = field(default_factory=list)
    """(deployment number, regions [n], site ids [n, redundancy], best first). 0 stands for no site; a row of zeros removes the entry."""
    deployments: dict[int, tuple[Sites, int] | None] = field(default_factory=dict)
    """Site ids and redundancy of new deployments by number; None for removed ones."""
    services: dict[str, int | None] = field(default_factory=dict)
    """Deployment numbers by service name; None for services without a site."""

    def __len__(self) -> int:
        """Return the number of changed table entries."""
        return len(self.clients) + sum(len(numbers) for _, numbers, _ in self.mapping) + len(self.services)

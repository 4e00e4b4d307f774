"""What goes into the computation of the mapping, and what comes out."""

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
    """Round trips between a client prefix and a site: the least of ``count``, in microseconds."""

    prefix: Prefix
    site: int
    rtt_us: float
    count: int = 1
    source: str = "passive"


@dataclass(frozen=True, slots=True)
class Measurements:
    """Cells of the latency table, as arrays: ``rtts[i]`` microseconds from ``prefixes[rows[i]]`` to ``sites[i]``; NaN removes."""

    prefixes: Sequence[Prefix]
    rows: Rows
    sites: Rows
    rtts: Rtts

    @classmethod
    def of(cls, cells: Mapping[tuple[Prefix, int], float]) -> Measurements:
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
        """The same by prefix and site; for few of them."""
        numbers = zip(self.rows.tolist(), self.sites.tolist(), self.rtts.tolist(), strict=True)
        return {(self.prefixes[row], site): rtt for row, site, rtt in numbers}

    def at(self, sites: Iterable[int]) -> Measurements:
        """Those of these sites."""
        kept = np.isin(self.sites, list(sites))
        return self if kept.all() else Measurements(self.prefixes, self.rows[kept], self.sites[kept], self.rtts[kept])


@dataclass(slots=True)
class Changes:
    """What turns one state of the tables into the next."""

    clients: dict[Prefix, int] = field(default_factory=dict)
    """Client prefixes and their regions; 0 removes the entry."""
    mapping: list[tuple[int, Rows, Choice]] = field(default_factory=list)
    """(deployment's number, regions [n], site ids [n, redundancy] best first); 0 stands for none, all 0 removes the entry."""
    deployments: dict[int, tuple[Sites, int] | None] = field(default_factory=dict)
    """Deployments that are new, with their site ids and redundancy, or gone."""
    services: dict[str, int | None] = field(default_factory=dict)
    """Services, and the number of their deployment; None of those that have no site."""

    def __len__(self) -> int:
        """Table entries."""
        return len(self.clients) + sum(len(numbers) for _, numbers, _ in self.mapping) + len(self.services)

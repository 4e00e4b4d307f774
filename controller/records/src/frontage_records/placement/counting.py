# SPDX-License-Identifier: Apache-2.0
"""Counts of a server's requests by record and client region, in bounded memory. Callers pass the time with each call.

Counts decay: a request has half its weight after `half_life` seconds (forward decay; Cormode and others, 2009). The counter keeps the
records with most requests (space-saving; Metwally and others, 2005). With room for k records, it has each record that causes more than
1 / k of the weight. It reports no record with more requests than the record has had.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_RECORDS = 10_000
"""Maximum number of records that a server counts."""
_MAX_EXPONENT = 64.0
"""Half-lives after which all counts are scaled down, so that they do not overflow."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests per second for a record from one region."""

    reads: float
    writes: float


@dataclass(slots=True)
class _Entry:
    weight: float
    """Upper bound of the record's weight, which decides whether the record is kept or dropped."""
    regions: dict[int, list[float]] = field(default_factory=dict)
    """Weights of reads and writes since the entry was created, by region."""


class DemandCounter:
    """The counts of one server."""

    def __init__(self, half_life: float, now: float, most: int = MAX_RECORDS):
        self._half_life = half_life
        self._most = most
        self._since = now
        """The time at which a request has the weight 1."""
        self._begun = now
        self._entries: dict[str, _Entry] = {}
        self._heap: list[tuple[float, str]] = []
        """Weights at some earlier time, which are lower bounds of the current ones. Updating the first entry finds the lightest record."""

    def __len__(self) -> int:
        return len(self._entries)

    def count(self, guid: str, region: int, now: float, *, writes: bool) -> None:
        """Count one request."""
        weight = self._weight(now)
        entry = self._entries.get(guid)
        if entry is None:
            entry = self._entries[guid] = _Entry(self._make_room())
            heapq.heappush(self._heap, (entry.weight, guid))
        entry.weight += weight
        entry.regions.setdefault(region, [0.0, 0.0])[writes] += weight

    def rates(self, now: float, least: float = 0.0) -> dict[str, Mapping[int, Rates]]:
        """Return the rates of all records and regions with at least ``least`` requests per second."""
        # The integral of the weight of one request per second, from the beginning until now.
        age = max(now - self._begun, 1e-9)
        whole = self._weight(now) * self._half_life / math.log(2) * (1 - 2 ** (-age / self._half_life))
        found: dict[str, Mapping[int, Rates]] = {}
        for guid, entry in self._entries.items():
            regions = {
                region: Rates(reads / whole, writes / whole)
                for region, (reads, writes) in entry.regions.items()
                if reads + writes > 0 and (reads + writes) / whole >= least
            }
            if regions:
                found[guid] = regions
        return found

    def _weight(self, now: float) -> float:
        exponent = (now - self._since) / self._half_life
        if exponent > _MAX_EXPONENT:
            scale = 2**-exponent
            for entry in self._entries.values():
                entry.weight *= scale
                entry.regions = {region: [reads * scale, writes * scale] for region, (reads, writes) in entry.regions.items()}
            self._heap = [(entry.weight, guid) for guid, entry in self._entries.items()]
            heapq.heapify(self._heap)
            self._since, exponent = now, 0.0
        return float(2**exponent)

    def _make_room(self) -> float:
        """Drop the lightest record, and return its weight, which is the largest weight that a new record may have had before."""
        if len(self._entries) < self._most:
            return 0.0
        while True:
            weight, guid = self._heap[0]
            present = self._entries[guid].weight
            if present == weight:
                heapq.heappop(self._heap)
                del self._entries[guid]
                return weight
            heapq.heapreplace(self._heap, (present, guid))

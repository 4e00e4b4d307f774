# SPDX-License-Identifier: Apache-2.0
"""Counts of a server's requests by record and client region, in bounded memory.

The counter keeps the records with most requests (space-saving; Metwally and others, 2005). With room for k records, it has each record
that causes more than 1 / k of the requests. It reports no record with more requests than the record has had.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_RECORDS = 10_000
"""Maximum number of records that a server counts."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The number of requests for a record from one region."""

    reads: int
    writes: int

    def __add__(self, other: Requests) -> Requests:
        return Requests(self.reads + other.reads, self.writes + other.writes)

    @property
    def total(self) -> int:
        """Reads and writes together."""
        return self.reads + self.writes


Counts = Mapping[str, Mapping[int, Requests]]
"""Requests by GUID and region."""


@dataclass(slots=True)
class _Entry:
    bound: int
    """Upper bound of the record's requests, which decides whether the record is kept or dropped."""
    regions: dict[int, list[int]] = field(default_factory=dict)
    """Reads and writes since the entry was created, by region."""


class DemandCounter:
    """The counts of one server since the last `take`."""

    def __init__(self, most: int = MAX_RECORDS):
        self._most = most
        self._entries: dict[str, _Entry] = {}
        self._heap: list[tuple[int, str]] = []
        """Bounds at some earlier time, which are lower bounds of the current ones. Updating the first entry finds the least record."""

    def __len__(self) -> int:
        return len(self._entries)

    def count(self, guid: str, region: int, *, writes: bool) -> None:
        """Count one request."""
        entry = self._entries.get(guid)
        if entry is None:
            entry = self._entries[guid] = _Entry(self._make_room())
            heapq.heappush(self._heap, (entry.bound, guid))
        entry.bound += 1
        entry.regions.setdefault(region, [0, 0])[writes] += 1

    def take(self) -> Counts:
        """Return the counts, and start again from zero."""
        found = {
            guid: {region: Requests(*numbers) for region, numbers in entry.regions.items()} for guid, entry in self._entries.items()
        }
        self._entries, self._heap = {}, []
        return found

    def _make_room(self) -> int:
        """Drop the record with the least bound, and return this bound: a new record may have had as many requests before."""
        if len(self._entries) < self._most:
            return 0
        while True:
            bound, guid = self._heap[0]
            present = self._entries[guid].bound
            if present == bound:
                heapq.heappop(self._heap)
                del self._entries[guid]
                return bound
            heapq.heapreplace(self._heap, (present, guid))

# SPDX-License-Identifier: Apache-2.0
"""A cache of log tails that this server has written, which saves the next write a read.

A cached tail may be stale, because other servers write too. So no client gets an answer from the cache alone: the server first
publishes the next message after the cached tail, and the leader refuses it if another message has been stored since (see `log`). Then
the cached tail is dropped, and the leader is queried.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from frontage_records.jetstream.log import Tail
from frontage_records.jetstream.placement_groups import PlacementGroup
from frontage_records.record import Record

MAX_BYTES = 1 << 26
"""Size of the cache; the least recently written records are evicted first."""
_OVERHEAD, _OVERHEAD_OF_DONE = 1024, 256
"""Approximate bytes of a cached tail without its document, and of a remembered result in it."""


@dataclass(frozen=True, slots=True)
class Location:
    """The placement group of a record, and the tail of its log there."""

    group: PlacementGroup
    tail: Tail

    @property
    def record(self) -> Record | None:
        """The state at the tail; None without a state."""
        return self.tail.entry.record


class WriteCache:
    """The locations of records that this server wrote last."""

    def __init__(self, max_bytes: int = MAX_BYTES):
        self._max_bytes = max_bytes
        self._size = 0
        self._locations: OrderedDict[str, Location] = OrderedDict()

    def __len__(self) -> int:
        return len(self._locations)

    def get(self, guid: str) -> Location | None:
        """Return the cached location of a record."""
        return self._locations.get(guid)

    def put(self, guid: str, location: Location) -> None:
        """Cache the location of a record."""
        self.drop(guid)
        self._locations[guid] = location
        self._size += _size(location)
        while self._size > self._max_bytes:
            _, evicted = self._locations.popitem(last=False)
            self._size -= _size(evicted)

    def drop(self, guid: str) -> None:
        """Remove a record from the cache."""
        location = self._locations.pop(guid, None)
        if location is not None:
            self._size -= _size(location)


def _size(location: Location) -> int:
    document = (location.record and location.record.document) or b""
    return _OVERHEAD + _OVERHEAD_OF_DONE * len(location.tail.entry.memory.done) + len(document)

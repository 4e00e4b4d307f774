"""The last message of records, as far as this server wrote it itself: who writes next need not ask what is there.

A head may be wrong, since others write too. So nothing is said to anybody by a head alone: what was made of it is published behind
it, and the leader refuses that where another message has come since (`chain`). Then the head is dropped, and the leader asked.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from frontage_records.jetstream.log import Tip
from frontage_records.jetstream.streams import StreamClass
from frontage_records.record import Record

KEPT = 1 << 26
"""Bytes of heads that are kept; the least recently written go first."""
_OVERHEAD = 1024
"""Bytes of a head beside its document, about."""


@dataclass(frozen=True, slots=True)
class Place:
    """A record's group, and its last message there that counts."""

    group: StreamClass
    tip: Tip

    @property
    def record(self) -> Record | None:
        return self.tip.entry.record


class Heads:
    def __init__(self, kept: int = KEPT):
        self._kept = kept
        self._size = 0
        self._places: OrderedDict[str, Place] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, guid: str) -> Place | None:
        return self._places.get(guid)

    def put(self, guid: str, place: Place) -> None:
        self.drop(guid)
        self._places[guid] = place
        self._size += _size(place)
        while self._size > self._kept:
            _, gone = self._places.popitem(last=False)
            self._size -= _size(gone)

    def drop(self, guid: str) -> None:
        place = self._places.pop(guid, None)
        if place is not None:
            self._size -= _size(place)


def _size(place: Place) -> int:
    return _OVERHEAD + len((place.record and place.record.document) or b"")

# SPDX-License-Identifier: Apache-2.0
"""The engine's memory of demand: a row for each record, and its requests by region."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.values import Flags, Keys, Rates, Rows

_ROWS = 65536
"""Rows moved at a time, so that their indices take little memory."""


class Records:
    """The rows of records. The rows of removed records are reused."""

    def __init__(self) -> None:
        self.keys: Keys = np.empty(0, np.uint64)
        """The record in each row."""
        self.live: Flags = np.empty(0, np.bool_)
        self._sorted: Keys = np.empty(0, np.uint64)
        self._rows: Rows = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.keys.nbytes + self.live.nbytes + self._sorted.nbytes + self._rows.nbytes

    def find(self, keys: Keys) -> Rows:
        """Return the rows of records; -1 for unknown ones."""
        if not len(self._sorted):
            return np.full(len(keys), -1)
        position = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.where(self._sorted[position] == keys, self._rows[position], -1)

    def add(self, keys: Keys) -> Rows:
        """Return the rows of records, and give rows to new ones. ``keys`` are distinct."""
        rows = self.find(keys)
        new = np.flatnonzero(rows < 0)
        if len(new):
            free = np.flatnonzero(~self.live)[: len(new)]
            grown = len(new) - len(free)
            rows[new] = np.concatenate([free, np.arange(len(self.keys), len(self.keys) + grown)])
            self.keys = np.concatenate([self.keys, np.zeros(grown, np.uint64)])
            self.live = np.concatenate([self.live, np.zeros(grown, np.bool_)])
            self.keys[rows[new]] = keys[new]
            self.live[rows[new]] = True
            self._index()
        return rows

    def remove(self, rows: Rows) -> None:
        """Free these rows."""
        self.live[rows] = False
        self._index()

    def _index(self) -> None:
        rows = np.flatnonzero(self.live)
        order = np.argsort(self.keys[rows])
        self._rows = rows[order]
        self._sorted = self.keys[self._rows]


class Regional:
    """The requests for each record by region, in one pool. A record's slot is as large as the most entries that it has had."""

    def __init__(self) -> None:
        self._start: Rows = np.empty(0, np.int64)
        self._slot: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self._length: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self._regions: npt.NDArray[np.uint16] = np.empty(0, np.uint16)
        self._requests: Rates = np.empty(0, np.float32)
        self._used = 0

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        index = self._start.nbytes + self._slot.nbytes + self._length.nbytes
        return index + self._regions.nbytes + self._requests.nbytes

    def put(self, rows: Rows, starts: Rows, regions: npt.NDArray[np.uint16], requests: Rates) -> None:
        """Replace the entries of ``rows``. Row i gets the entries from ``starts[i]`` to ``starts[i + 1]``."""
        more = int(rows.max(initial=-1)) + 1 - len(self._start)
        if more > 0:
            self._start = np.concatenate([self._start, np.zeros(more, np.int64)])
            self._slot = np.concatenate([self._slot, np.zeros(more, np.int32)])
            self._length = np.concatenate([self._length, np.zeros(more, np.int32)])
        length = np.diff(starts)
        large = length > self._slot[rows]
        grown, sizes = rows[large], length[large]
        self._slot[grown] = 0
        self._make_room(int(sizes.sum()))
        self._start[grown] = self._used + np.cumsum(sizes) - sizes
        self._slot[grown] = sizes
        self._used += int(sizes.sum())
        self._length[rows] = length
        at = np.repeat(self._start[rows] - starts[:-1], length) + np.arange(len(regions))
        self._regions[at] = regions
        self._requests[at] = requests

    def most_first(self, rows: Rows, padding: int) -> tuple[Rows, Rates]:
        """Return the regions and requests of these rows, most requests first, equal ones by region.

        ``padding`` and 0 fill the rest.
        """
        length = self._length[rows]
        ranks = np.arange(int(length.max(initial=0)))
        there = ranks < length[:, None]
        at = np.where(there, self._start[rows][:, None] + ranks, 0)
        # Non-negative floats sort like their bits, so one integer key can hold both requests and region.
        requests = np.where(there, self._requests[at], np.float32(0))
        region = np.where(there, self._regions[at], padding).astype(np.uint64)
        keys = np.sort(((~requests.view(np.uint32)).astype(np.uint64) << np.uint64(32)) | region, axis=1)
        ordered = (~(keys >> np.uint64(32)).astype(np.uint32)).view(np.float32)
        return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64), ordered

    def _make_room(self, more: int) -> None:
        """Make room for ``more`` entries at the end. If the pool must grow, unused slots are dropped."""
        if self._used + more <= len(self._regions):
            return
        kept = int(self._slot.sum(dtype=np.int64))
        size = kept + more + (kept + more) // 8 if self._used else more
        regions, requests = np.zeros(size, np.uint16), np.zeros(size, np.float32)
        if kept == self._used:
            regions[:kept], requests[:kept] = self._regions[:kept], self._requests[:kept]
        else:
            self._move(regions, requests)
        self._regions, self._requests, self._used = regions, requests, kept

    def _move(self, regions: npt.NDArray[np.uint16], requests: Rates) -> None:
        held = np.flatnonzero(self._slot)
        end = 0
        for first in range(0, len(held), _ROWS):
            rows = held[first : first + _ROWS]
            slot = self._slot[rows].astype(np.int64)
            starts = np.cumsum(slot) - slot
            at = np.repeat(self._start[rows] - starts, slot) + np.arange(slot.sum())
            regions[end : end + len(at)], requests[end : end + len(at)] = self._regions[at], self._requests[at]
            self._start[rows] = starts + end
            end += len(at)

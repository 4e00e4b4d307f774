"""The RTTs between client prefixes and sites, as a matrix; what a prefix has not measured it takes from the one that covers it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.prefixes import Cover, Prefix, Rows

Rtts = npt.NDArray[np.float32]


class Latency:
    """``own`` holds what was measured, ``effective`` what counts: rows are client prefixes, columns sites, values microseconds.

    Inheritance is by cell: a prefix that one site alone has heard of keeps the other sites' RTTs of its covering prefix.
    """

    def __init__(self, sites: int):
        self.cover = Cover()
        self.own: Rtts = np.empty((0, sites), np.float32)
        """NaN where nothing is known."""
        self.effective: Rtts = np.empty((0, sites), np.float32)
        """Infinite where nothing is known."""
        self.measured = np.empty(0, np.bool_)
        """The rows with an RTT of their own."""

    @property
    def nbytes(self) -> int:
        return self.own.nbytes + self.effective.nbytes + self.measured.nbytes

    def update(self, prefixes: Sequence[Prefix], rows: Rows, columns: Rows, rtts: Rtts) -> Rows:
        """Set ``own[prefixes[rows], columns] = rtts`` (NaN removes). Returns the rows whose effective RTTs may be others now."""
        touched = np.zeros(0, np.bool_)
        moved = self.cover.add(set(prefixes))
        self._grow(len(self.cover))
        touched = np.zeros(len(self.cover), np.bool_)
        touched[moved] = True
        numbers = np.fromiter((self.cover.rows[prefix] for prefix in prefixes), np.int64, len(prefixes))
        at = numbers[rows]
        self.own[at, columns] = rtts
        touched[at] = True
        changed = np.flatnonzero(touched)
        self.measured[changed] = ~np.isnan(self.own[changed]).all(axis=1)
        return self._inherit(touched)

    def _inherit(self, touched: npt.NDArray[np.bool_]) -> Rows:
        for level in self.cover.levels:
            parent = self.cover.parent[level]
            touched[level] |= (parent >= 0) & touched[parent]
            rows = level[touched[level]]
            own, above = self.own[rows], self.cover.parent[rows]
            inherited = np.where((above >= 0)[:, None], self.effective[above], np.float32(np.inf))
            self.effective[rows] = np.where(np.isnan(own), inherited, own)
        return np.flatnonzero(touched)

    def _grow(self, rows: int) -> None:
        """Room for that many; grown by half, so that prefixes that come one by one do not copy everything each time."""
        have = len(self.own)
        if rows <= have:
            return
        room = max(rows, have + have // 2)
        sites = self.own.shape[1]
        self.own = np.concatenate([self.own, np.full((room - have, sites), np.nan, np.float32)])
        self.effective = np.concatenate([self.effective, np.full((room - have, sites), np.inf, np.float32)])
        self.measured = np.concatenate([self.measured, np.zeros(room - have, np.bool_)])

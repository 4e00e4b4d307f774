# SPDX-License-Identifier: Apache-2.0
"""The matrix of RTTs between client prefixes and sites. A prefix inherits missing RTTs from the longest prefix that covers it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.prefixes import Cover, Prefix, Rows

Rtts = npt.NDArray[np.float32]


class Latency:
    """RTTs in microseconds. Rows are client prefixes, columns are sites. ``own`` are measured, ``effective`` include inherited ones.

    Inheritance is per cell: a prefix measured by one site only inherits the other sites' RTTs from its covering prefix.
    """

    def __init__(self, sites: int):
        self.cover = Cover()
        self.own: Rtts = np.empty((0, sites), np.float32)
        """Measured RTTs; NaN without a measurement."""
        self.effective: Rtts = np.empty((0, sites), np.float32)
        """Measured or inherited RTTs; infinite without either."""
        self.measured = np.empty(0, np.bool_)
        """Flags of rows with a measured RTT."""

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.own.nbytes + self.effective.nbytes + self.measured.nbytes

    def update(self, prefixes: Sequence[Prefix], rows: Rows, columns: Rows, rtts: Rtts) -> Rows:
        """Set ``own[prefixes[rows], columns] = rtts`` (NaN removes). Returns the rows whose effective RTTs may have changed."""
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
        """Make room for ``rows`` rows. Arrays grow by half, so that adding prefixes one by one does not copy everything each time."""
        have = len(self.own)
        if rows <= have:
            return
        room = max(rows, have + have // 2)
        sites = self.own.shape[1]
        self.own = np.concatenate([self.own, np.full((room - have, sites), np.nan, np.float32)])
        self.effective = np.concatenate([self.effective, np.full((room - have, sites), np.inf, np.float32)])
        self.measured = np.concatenate([self.measured, np.zeros(room - have, np.bool_)])

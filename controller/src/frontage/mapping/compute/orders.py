"""Which sites are nearer to a client prefix than which: prefixes share *orders*, and keep theirs while it is good enough.

An order lists the measured sites of a prefix, nearest first. It *fits* a prefix if no site stands behind one that is farther by
more than the margin: RTT <= (1 + hysteresis) * nearest of those behind + slack. So whatever set of sites a service has, the first
of them in the order is that near to the best. A prefix changes its order only when it no longer fits, which is the hysteresis
against flapping; and then first tries orders that others have, so that orders, and with them regions, are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.latency import Rtts
from frontage.mapping.compute.prefixes import Rows

NONE = 0xFFFF
"""The key of a site that an order does not have."""
_PAD = 0xFF
TRIES = 32
"""Orders of others that a prefix is held against, and new ones that a nearest site's prefixes found at a time to share."""
_BATCH = 16384
_TOGETHER = 64
"""Prefixes looked at in one go: few enough for the processor's cache."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How much farther than the best site a chosen one may be: a share of the RTT, and microseconds."""

    share: float
    slack_us: float


class Orders:
    """All orders in use, and which prefix has which."""

    def __init__(self, sites: int, margin: Margin):
        self.margin = margin
        self.of_row = np.empty(0, np.int64)
        """Each prefix's order; -1 of none."""
        self.places = np.empty((0, sites), np.uint8)
        """Of each order the columns of its sites, nearest first."""
        self.keys = np.empty((sites, 0), np.uint16)
        """[site, order] -> place << 8 | site, or NONE: the least key of a set of sites names the first of them."""
        self.users = np.empty(0, np.int64)
        """Prefixes that have the order."""
        self.born = np.empty(0, np.int64)
        """Tells an order from an earlier one of the same number."""
        self._by_places: dict[bytes, int] = {}
        self._free: list[int] = []
        self._births = 0

    @property
    def nbytes(self) -> int:
        return self.of_row.nbytes + self.places.nbytes + self.keys.nbytes + self.users.nbytes + self.born.nbytes

    @property
    def live(self) -> Rows:
        return np.flatnonzero(self.users > 0)

    def update(self, rows: Rows, effective: Rtts, rank: Rows) -> tuple[Rows, Rows]:
        """Look at ``rows`` again, whose RTTs have changed. Returns (the rows with another order, the new orders)."""
        if len(rank) > len(self.of_row):
            self.of_row = np.concatenate([self.of_row, np.full(len(rank) - len(self.of_row), -1, np.int64)])
        births = self._births
        rows = rows[np.argsort(rank[rows])]
        misfits = np.concatenate([self._misfits(rows[i : i + _BATCH], effective) for i in range(0, len(rows), _BATCH)] or [rows])
        # Their orders stay for others to find until all have one: a prefix may go back to what it had.
        before = self.of_row[misfits]
        nearest = effective[misfits].argmin(axis=1)
        unknown = np.isinf(effective[misfits]).all(axis=1)
        self.of_row[misfits[unknown]] = -1
        for site in np.unique(nearest[~unknown]).tolist():
            self._settle(misfits[(nearest == site) & ~unknown], site, effective)
        after = self.of_row[misfits]
        np.add.at(self.users, after[after >= 0], 1)
        np.subtract.at(self.users, before[before >= 0], 1)
        for order in np.unique(before[before >= 0]).tolist():
            if self.users[order] == 0:
                del self._by_places[self.places[order].tobytes()]
                self._free.append(order)
        new = np.flatnonzero((self.born > births) & (self.users > 0))
        return misfits[before != after], new

    def _misfits(self, rows: Rows, effective: Rtts) -> Rows:
        orders = self.of_row[rows]
        fits = np.zeros(len(rows), np.bool_)
        having = np.flatnonzero(orders >= 0)
        fits[having] = self._fit(effective[rows[having]], self.places[orders[having]])
        return rows[~fits]

    def _fit(self, rtts: Rtts, places: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Of each line of ``rtts`` (n x sites) whether the same line of ``places`` (or its only one) fits it."""
        padding = places == _PAD
        padded = padding.any()
        index = np.where(padding, 0, places) if padded else places
        # As one long array: several times faster than numpy's own take_along_axis.
        in_order = rtts.ravel().take(index + (np.arange(len(rtts)) * rtts.shape[1])[:, None])
        if padded:
            in_order[np.broadcast_to(padding, rtts.shape)] = np.inf
        limit = np.minimum.accumulate(in_order[:, ::-1], axis=1)[:, ::-1]
        limit *= np.float32(1 + self.margin.share)
        limit += np.float32(self.margin.slack_us)
        fits: npt.NDArray[np.bool_] = (in_order <= limit).all(axis=1)
        known, measured = np.isfinite(in_order), np.isfinite(rtts)
        if padded or not (known.all() and measured.all()):
            fits &= (known | padding).all(axis=1) & (known.sum(axis=1) == measured.sum(axis=1))
        return fits

    def _settle(self, pending: Rows, nearest: int, effective: Rtts) -> None:
        """Give an order to each of ``pending``, in address order, whose nearest site is ``nearest``.

        Prefixes that had the same order go together: what has moved one has moved the others. The first of each group looks for an
        order that fits, or founds one, and offers it to its group; until all have one.
        """
        live = self.live
        known = live[self.places[live, 0] == nearest]
        known = known[np.lexsort((self.born[known], -self.users[known]))][:TRIES]
        founded: list[int] = []
        group = self.of_row[pending]
        for _ in range(TRIES):
            if not len(pending):
                return
            _, first, member = np.unique(group, return_index=True, return_inverse=True)
            offered = self._lead(pending[first], known, founded, effective)[member]
            fits = self._fit(effective[pending], self.places[offered])
            fits[first] = True
            self.of_row[pending[fits]] = offered[fits]
            pending, group = pending[~fits], group[~fits]
        for row, places in zip(pending.tolist(), _sorted(effective[pending]), strict=True):
            self.of_row[row] = self._order(places)

    def _lead(self, leaders: Rows, known: Rows, founded: list[int], effective: Rtts) -> Rows:
        """An order for each of ``leaders``: one of ``known``, or of ``founded``, to which new ones are added."""
        candidates = np.concatenate([known, np.array(founded[-TRIES:], np.int64)])
        orders = np.concatenate(
            [self._fitting(candidates, leaders[i : i + _TOGETHER], effective) for i in range(0, len(leaders), _TOGETHER)]
        )
        before = len(founded)
        for i in np.flatnonzero(orders < 0).tolist():
            (order,) = self._fitting(np.array(founded[before:], np.int64), leaders[i : i + 1], effective).tolist()
            if order < 0:
                order = self._order(_sorted(effective[leaders[i : i + 1]])[0])
                founded.append(order)
            orders[i] = order
        return orders

    def _fitting(self, orders: Rows, rows: Rows, effective: Rtts) -> Rows:
        """For each of ``rows`` the first of ``orders`` that fits it; -1 if none does."""
        if not len(orders):
            return np.full(len(rows), -1, np.int64)
        rtts = np.repeat(effective[rows], len(orders), axis=0)
        fits = self._fit(rtts, np.tile(self.places[orders], (len(rows), 1))).reshape(len(rows), len(orders))
        return np.where(fits.any(axis=1), orders[fits.argmax(axis=1)], -1)

    def _order(self, places: npt.NDArray[np.uint8]) -> int:
        name = places.tobytes()
        if (order := self._by_places.get(name)) is not None:
            return order
        if not self._free:
            self._grow()
        order = self._free.pop()
        self._births += 1
        self._by_places[name] = order
        self.places[order], self.born[order] = places, self._births
        sites = places[places != _PAD]
        self.keys[:, order] = NONE
        self.keys[sites, order] = np.arange(len(sites), dtype=np.uint16) << 8 | sites
        return order

    def _grow(self) -> None:
        have, sites = self.places.shape
        more = max(64, have // 2)
        self.places = np.concatenate([self.places, np.full((more, sites), _PAD, np.uint8)])
        self.keys = np.concatenate([self.keys, np.full((sites, more), NONE, np.uint16)], axis=1)
        self.users = np.concatenate([self.users, np.zeros(more, np.int64)])
        self.born = np.concatenate([self.born, np.zeros(more, np.int64)])
        self._free.extend(range(have + more - 1, have - 1, -1))


def _sorted(rtts: Rtts) -> npt.NDArray[np.uint8]:
    """The columns of each line by RTT; equal ones by column, unknown ones as padding."""
    places = np.argsort(rtts, axis=1, kind="stable").astype(np.uint8)
    unknown = np.take_along_axis(np.isinf(rtts), places.astype(np.intp), axis=1)
    return np.where(unknown, np.uint8(_PAD), places)

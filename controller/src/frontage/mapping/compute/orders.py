# SPDX-License-Identifier: Apache-2.0
"""Orders: the sites by distance from a client prefix. Prefixes share orders, and keep theirs while it is good enough.

An order lists the measured sites of a prefix, nearest first. It *fits* a prefix if no site precedes another that is nearer by more
than the margin: RTT <= (1 + hysteresis) * (minimum RTT of the sites behind) + slack. So for any set of sites, the first of them in
the order is within the margin of the best. A prefix changes its order only when the order no longer fits, which is the hysteresis
against flapping. It then tries the orders of other prefixes first, which keeps the number of orders, and so of regions, small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.latency import Rtts
from frontage.mapping.compute.prefixes import Rows

NONE = 0xFFFF
"""The key of a site that is not in the order."""
_PAD = 0xFF
TRIES = 32
"""Most existing orders, and most new ones per nearest site, that a prefix is compared with."""
_BATCH = 16384
_CHUNK = 64
"""Prefixes that are compared at a time: few enough for the processor's cache."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How much farther than the best site a chosen one may be: a share of the RTT, plus microseconds."""

    share: float
    slack_us: float


class Orders:
    """All orders in use, and the order of each prefix."""

    def __init__(self, sites: int, margin: Margin):
        self.margin = margin
        self.of_row = np.empty(0, np.int64)
        """The order of each prefix; -1 for none."""
        self.places = np.empty((0, sites), np.uint8)
        """[order] -> columns of its sites, nearest first."""
        self.keys = np.empty((sites, 0), np.uint16)
        """[site, order] -> rank << 8 | site, or NONE. The minimum key over a set of sites names the first of them in the order."""
        self.users = np.empty(0, np.int64)
        """Number of prefixes that have the order."""
        self.born = np.empty(0, np.int64)
        """Serial number, which distinguishes an order from earlier ones of the same number."""
        self._by_places: dict[bytes, int] = {}
        self._free: list[int] = []
        self._births = 0

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.of_row.nbytes + self.places.nbytes + self.keys.nbytes + self.users.nbytes + self.born.nbytes

    @property
    def live(self) -> Rows:
        """The orders in use."""
        return np.flatnonzero(self.users > 0)

    def update(self, rows: Rows, effective: Rtts, rank: Rows) -> tuple[Rows, Rows]:
        """Check ``rows``, whose RTTs have changed. Returns (rows whose order has changed, new orders)."""
        if len(rank) > len(self.of_row):
            self.of_row = np.concatenate([self.of_row, np.full(len(rank) - len(self.of_row), -1, np.int64)])
        births = self._births
        rows = rows[np.argsort(rank[rows])]
        misfits = np.concatenate([self._misfits(rows[i : i + _BATCH], effective) for i in range(0, len(rows), _BATCH)] or [rows])
        # Old orders stay until all prefixes have one, because a prefix may find its old order again.
        before = self.of_row[misfits]
        nearest = effective[misfits].argmin(axis=1)
        unknown = np.isinf(effective[misfits]).all(axis=1)
        self.of_row[misfits[unknown]] = -1
        for site in np.unique(nearest[~unknown]).tolist():
            self._assign(misfits[(nearest == site) & ~unknown], site, effective)
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
        """Return the rows whose order does not fit."""
        orders = self.of_row[rows]
        fits = np.zeros(len(rows), np.bool_)
        having = np.flatnonzero(orders >= 0)
        fits[having] = self._fit(effective[rows[having]], self.places[orders[having]])
        return rows[~fits]

    def _fit(self, rtts: Rtts, places: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Return for each row of ``rtts`` (n x sites) whether the same row of ``places``, or its only row, fits."""
        padding = places == _PAD
        padded = padding.any()
        index = np.where(padding, 0, places) if padded else places
        # Indexing the flat array is several times faster than take_along_axis.
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

    def _assign(self, pending: Rows, nearest: int, effective: Rtts) -> None:
        """Assign an order to each of the ``pending`` prefixes, given in address order, whose nearest site is ``nearest``.

        Prefixes that had the same order form a group, because the same change probably affects them all. The first prefix of each
        group finds an order that fits, or creates one. The other prefixes of the group take it if it fits them. This is repeated
        for the rest.
        """
        live = self.live
        known = live[self.places[live, 0] == nearest]
        known = known[np.lexsort((self.born[known], -self.users[known]))][:TRIES]
        created: list[int] = []
        group = self.of_row[pending]
        for _ in range(TRIES):
            if not len(pending):
                return
            _, first, member = np.unique(group, return_index=True, return_inverse=True)
            candidate = self._find_orders(pending[first], known, created, effective)[member]
            fits = self._fit(effective[pending], self.places[candidate])
            fits[first] = True
            self.of_row[pending[fits]] = candidate[fits]
            pending, group = pending[~fits], group[~fits]
        for row, places in zip(pending.tolist(), _sorted(effective[pending]), strict=True):
            self.of_row[row] = self._order(places)

    def _find_orders(self, leaders: Rows, known: Rows, created: list[int], effective: Rtts) -> Rows:
        """Return an order for each of ``leaders``: one of ``known`` or ``created``, or a new one, which is added to ``created``."""
        candidates = np.concatenate([known, np.array(created[-TRIES:], np.int64)])
        orders = np.concatenate(
            [self._fitting(candidates, leaders[i : i + _CHUNK], effective) for i in range(0, len(leaders), _CHUNK)]
        )
        before = len(created)
        for i in np.flatnonzero(orders < 0).tolist():
            (order,) = self._fitting(np.array(created[before:], np.int64), leaders[i : i + 1], effective).tolist()
            if order < 0:
                order = self._order(_sorted(effective[leaders[i : i + 1]])[0])
                created.append(order)
            orders[i] = order
        return orders

    def _fitting(self, orders: Rows, rows: Rows, effective: Rtts) -> Rows:
        """Return for each of ``rows`` the first of ``orders`` that fits; -1 if none does."""
        if not len(orders):
            return np.full(len(rows), -1, np.int64)
        rtts = np.repeat(effective[rows], len(orders), axis=0)
        fits = self._fit(rtts, np.tile(self.places[orders], (len(rows), 1))).reshape(len(rows), len(orders))
        return np.where(fits.any(axis=1), orders[fits.argmax(axis=1)], -1)

    def _order(self, places: npt.NDArray[np.uint8]) -> int:
        """Return the number of the order with these columns; or of a new one."""
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
    """Return the columns of each row sorted by RTT, then by column; columns without an RTT become padding."""
    places = np.argsort(rtts, axis=1, kind="stable").astype(np.uint8)
    unknown = np.take_along_axis(np.isinf(rtts), places.astype(np.intp), axis=1)
    return np.where(unknown, np.uint8(_PAD), places)

# SPDX-License-Identifier: Apache-2.0
"""Regions: groups of client prefixes for which every deployment makes the same choice. Regions keep their numbers over changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.choices import Signature
from frontage.mapping.compute.prefixes import Rows


@dataclass(frozen=True, slots=True)
class Partition:
    """One state of the regions."""

    of_row: Rows
    """The region of each prefix; 0 for no region."""
    order: Rows
    """[region] -> the order that represents the region: its choices are the region's. -1 for unused numbers."""
    born: Rows
    """[region] -> `Orders.born` of the representing order."""
    left_out: int
    """Number of prefixes left out because there are more regions than the limit."""

    @property
    def live(self) -> Rows:
        """The region numbers in use."""
        return np.flatnonzero(self.order >= 0)


def empty() -> Partition:
    """Return the partition of no prefixes."""
    return Partition(np.empty(0, np.int64), np.full(1, -1, np.int64), np.zeros(1, np.int64), 0)


def partition(before: Partition, of_row: Rows, signatures: Signature, born: Rows, limit: int) -> Partition:
    """Group prefixes by the signatures of their orders.

    ``of_row``: the order of each prefix, -1 for none. ``signatures``: [words, orders]. A group keeps the number that most of its
    prefixes had, unless another group has more of them; otherwise it gets the smallest free number. If there are more groups than
    ``limit``, those with the fewest prefixes are left out.
    """
    rows = np.flatnonzero(of_row >= 0)
    if not len(rows):
        return Partition(np.zeros(len(of_row), np.int64), np.full(1, -1, np.int64), np.zeros(1, np.int64), 0)
    orders, order_of = np.unique(of_row[rows], return_inverse=True)
    group_of_order = _groups(signatures[:, orders])
    group = group_of_order[order_of]
    groups = int(group.max()) + 1
    sizes = np.bincount(group, minlength=groups)

    old = np.zeros(len(of_row), np.int64)
    old[: len(before.of_row)] = before.of_row
    kept = _inherit(group, old[rows], groups)
    wanted = np.lexsort((np.arange(groups), -sizes))[:limit]
    number = np.zeros(groups, np.int64)
    number[wanted] = kept[wanted]
    unnumbered = wanted[kept[wanted] == 0]
    taken = np.zeros(limit + len(before.order) + 2, np.bool_)
    taken[number] = True
    number[np.sort(unnumbered)] = np.flatnonzero(~taken[1:])[: len(unnumbered)] + 1

    size = int(number.max()) + 1
    order = np.full(size, -1, np.int64)
    # The order that represented a region goes on doing so if it still exists, which saves computation; otherwise the oldest does.
    by_age = np.argsort(-born[orders], kind="stable")
    order[number[group_of_order[by_age]]] = orders[by_age]
    same = before.order[:size]
    represented = np.flatnonzero((same >= 0) & (before.born[:size] == born[np.maximum(same, 0)]))
    position = np.minimum(np.searchsorted(orders, same[represented]), len(orders) - 1)
    still = (orders[position] == same[represented]) & (number[group_of_order[position]] == represented)
    order[represented[still]] = same[represented[still]]
    order[0] = -1

    result = np.zeros(len(of_row), np.int64)
    result[rows] = number[group]
    return Partition(result, order, np.where(order >= 0, born[np.maximum(order, 0)], 0), int((result[rows] == 0).sum()))


def _groups(signatures: Signature) -> Rows:
    """Return the group number of each signature. Equal signatures form a group; groups are numbered by first appearance."""
    packed: npt.NDArray[np.void] = np.ascontiguousarray(signatures.T).view(np.dtype((np.void, 8 * len(signatures))))[:, 0]
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    renumber = np.empty(len(first), np.int64)
    renumber[np.argsort(first)] = np.arange(len(first))
    return renumber[inverse]


def _inherit(group: Rows, old: Rows, groups: int) -> Rows:
    """Return the old number that each group keeps; 0 for none."""
    base = int(old.max()) + 1
    pairs, counts = np.unique(group * base + old, return_counts=True)
    kept = np.zeros(groups, np.int64)
    given = np.zeros(base, np.bool_)
    given[0] = True
    for pair in pairs[np.lexsort((pairs, -counts))].tolist():
        new, number = divmod(pair, base)
        if not given[number] and kept[new] == 0:
            kept[new], given[number] = number, True
    return kept

"""Regions: the groups of client prefixes for which every deployment in use chooses alike. Their numbers are kept over changes."""

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
    """Each prefix's region; 0 of none."""
    order: Rows
    """[region] -> an order of its prefixes, whose choices are the region's; -1 of numbers not in use."""
    born: Rows
    """[region] -> that order's `Orders.born`."""
    left_out: int
    """Prefixes for whose regions there were no numbers left."""

    @property
    def live(self) -> Rows:
        return np.flatnonzero(self.order >= 0)


def empty() -> Partition:
    return Partition(np.empty(0, np.int64), np.full(1, -1, np.int64), np.zeros(1, np.int64), 0)


def partition(before: Partition, of_row: Rows, signatures: Signature, born: Rows, limit: int) -> Partition:
    """Group prefixes by the signature of their orders (``of_row``, -1 of none; ``signatures`` [words, orders]).

    A new group gets the number that most of its prefixes had, if no group has more of those; else the smallest free one. Where
    there are more groups than ``limit``, those of the fewest prefixes are left out.
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
    nameless = wanted[kept[wanted] == 0]
    taken = np.zeros(limit + len(before.order) + 2, np.bool_)
    taken[number] = True
    number[np.sort(nameless)] = np.flatnonzero(~taken[1:])[: len(nameless)] + 1

    size = int(number.max()) + 1
    order = np.full(size, -1, np.int64)
    # The oldest order speaks for its region, unless the one that did so is still there: then nothing has to be computed again.
    by_age = np.argsort(-born[orders], kind="stable")
    order[number[group_of_order[by_age]]] = orders[by_age]
    same = before.order[:size]
    spoke = np.flatnonzero((same >= 0) & (before.born[:size] == born[np.maximum(same, 0)]))
    place = np.minimum(np.searchsorted(orders, same[spoke]), len(orders) - 1)
    still = (orders[place] == same[spoke]) & (number[group_of_order[place]] == spoke)
    order[spoke[still]] = same[spoke[still]]
    order[0] = -1

    result = np.zeros(len(of_row), np.int64)
    result[rows] = number[group]
    return Partition(result, order, np.where(order >= 0, born[np.maximum(order, 0)], 0), int((result[rows] == 0).sum()))


def _groups(signatures: Signature) -> Rows:
    """The number of each signature's group, by first appearance of equal ones."""
    packed: npt.NDArray[np.void] = np.ascontiguousarray(signatures.T).view(np.dtype((np.void, 8 * len(signatures))))[:, 0]
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    renumber = np.empty(len(first), np.int64)
    renumber[np.argsort(first)] = np.arange(len(first))
    return renumber[inverse]


def _inherit(group: Rows, old: Rows, groups: int) -> Rows:
    """Which old number each group keeps; 0 of none."""
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

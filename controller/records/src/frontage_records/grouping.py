# SPDX-License-Identifier: Apache-2.0
"""Assignment of records to placement groups. Records of one group share a stream, so that a million records do not need a million
Raft groups.

A record whose group has other sites than wanted has a cost: ``reads / sites`` for each missing site, whose reads go elsewhere, and
``writes`` for each extra site, which gets writes without readers. `group` minimizes the total cost like k-modes: each record takes the
cheapest group, then each group takes the sites that are worth more to its records than they cost, repeatedly. The result is
deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ROUNDS = 8
_CHUNK = 4096
"""Placements that are compared with all groups at once."""

Matrix = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WantedPlacements:
    """The wanted sites of records, as flags by [record, site], and their reads and writes per second."""

    sites: npt.NDArray[np.bool_]
    home: Numbers
    """The column of the site that orders each record's writes."""
    reads: Matrix
    writes: Matrix


@dataclass(frozen=True, slots=True)
class Grouping:
    """Placement groups, and the group of each record."""

    group_of: Numbers
    """The group of each record."""
    sites: npt.NDArray[np.bool_]
    """The sites of each group, as flags by [group, site]."""
    home: Numbers
    """The column of the site that orders each group's writes."""

    def lists(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the site ids of each group, that of the Raft group first. ``ids``: the site ids of the columns."""
        found = []
        for home, row in zip(self.home.tolist(), self.sites, strict=True):
            found.append((ids[home], *(ids[i] for i in np.flatnonzero(row).tolist() if i != home)))
        return found


def group(wanted: WantedPlacements, most: int, least: int) -> Grouping:
    """Return at most ``most`` groups of at least ``least`` (F) sites each. Raises ValueError without records or enough sites."""
    records, sites = wanted.sites.shape
    if not records or most < 1 or least > sites:
        raise ValueError(
            f"{records} records, {most} groups, {least} of {sites} sites: give at least one record, one group and {least} sites"
        )
    keys = np.concatenate([np.packbits(wanted.sites, axis=1), wanted.home[:, None].astype(np.uint16).view(np.uint8)], axis=1)
    _, first, alike = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    alike = alike.reshape(-1)
    wants = wanted.sites[first].astype(np.float32)
    home = wanted.home[first]
    share = (np.bincount(alike, wanted.reads) / np.maximum(wants.sum(1), 1)).astype(np.float32)
    writes = np.bincount(alike, wanted.writes).astype(np.float32)

    # Start with the heaviest. The sort is stable, so ties are resolved by row.
    chosen = np.argsort(-(share * wants.sum(1) + writes), kind="stable")[:most]
    groups, homes = wants[chosen], home[chosen]
    of = _cheapest(wants, home, share, writes, groups, homes)
    if len(first) > most:
        for _ in range(_ROUNDS):
            groups, homes = _improve(wants, home, share, writes, of, groups, homes, least)
            before, of = of, _cheapest(wants, home, share, writes, groups, homes)
            if np.array_equal(before, of):
                break
    used, of = np.unique(of, return_inverse=True)
    return Grouping(of.reshape(-1)[alike], groups[used] > 0, homes[used])


def _cheapest(wants: Matrix, home: Numbers, share: Matrix, writes: Matrix, groups: Matrix, homes: Numbers) -> Numbers:
    size, found = groups.sum(1), np.empty(len(wants), np.int64)
    for at in range(0, len(wants), _CHUNK):
        some = slice(at, at + _CHUNK)
        both = wants[some] @ groups.T
        missing, spare = wants[some].sum(1)[:, None] - both, size - both
        # With another home, writes travel farther, as if to one more site.
        away = home[some][:, None] != homes
        found[some] = np.argmin(share[some, None] * missing + writes[some, None] * (spare + away), axis=1)
    return found


def _improve(
    wants: Matrix, home: Numbers, share: Matrix, writes: Matrix, of: Numbers, groups: Matrix, homes: Numbers, least: int
) -> tuple[Matrix, Numbers]:
    """Return for each group the sites that are worth more to its records than they cost, and the home of most of its writes."""
    worth, at_home = np.zeros_like(groups), np.zeros_like(groups)
    np.add.at(worth, of, wants * share[:, None] - (1 - wants) * writes[:, None])
    np.add.at(at_home, (of, home), writes + np.float32(1e-6))
    used = np.bincount(of, minlength=len(groups)) > 0
    homes = np.where(used, at_home.argmax(1), homes)
    worth[np.arange(len(groups)), homes] = np.inf
    enough = np.argsort(-worth, axis=1, kind="stable")[:, :least]
    improved = (worth > 0).astype(np.float32)
    np.put_along_axis(improved, enough, 1, axis=1)
    return np.where(used[:, None], improved, groups), homes

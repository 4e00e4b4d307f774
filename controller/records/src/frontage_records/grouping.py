"""Classes of placement: which records share a stream, so that a million records do not need a million Raft groups.

A record that is kept elsewhere than it should be costs either of two things: reads at the sites that it should have go to another
(``reads / sites`` for each that is missing), or writes go to sites that nobody reads at (``writes`` for each that is too many).
Classes are what makes the sum of both the least, found as k-modes are: records go to the cheapest class, then each class takes the
sites that are worth more to its records than they cost, and again. Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ROUNDS = 8
_CHUNK = 4096
"""Placements that are compared with all classes at once."""

Matrix = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where records should be: True for each record (row) at each site (column); and their reads and writes per second."""

    sites: npt.NDArray[np.bool_]
    home: Numbers
    """The column of the site that orders a record's writes."""
    reads: Matrix
    writes: Matrix


@dataclass(frozen=True, slots=True)
class Classes:
    of: Numbers
    """Each record's class."""
    sites: npt.NDArray[np.bool_]
    """True for each class (row) at each site (column)."""
    home: Numbers

    def lists(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        """Each class's site ids, that of the Raft group first; ``ids`` are the columns'."""
        found = []
        for home, row in zip(self.home.tolist(), self.sites, strict=True):
            found.append((ids[home], *(ids[i] for i in np.flatnonzero(row).tolist() if i != home)))
        return found


def group(wanted: Wanted, most: int, least: int) -> Classes:
    """At most ``most`` classes of at least ``least`` sites (F). Raises ValueError without records or sites enough."""
    records, sites = wanted.sites.shape
    if not records or most < 1 or least > sites:
        raise ValueError(
            f"{records} records, {most} classes, {least} of {sites} sites: give at least one record and class, and sites enough"
        )
    keys = np.concatenate([np.packbits(wanted.sites, axis=1), wanted.home[:, None].astype(np.uint16).view(np.uint8)], axis=1)
    _, first, alike = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    alike = alike.reshape(-1)
    wants = wanted.sites[first].astype(np.float32)
    home = wanted.home[first]
    share = (np.bincount(alike, wanted.reads) / np.maximum(wants.sum(1), 1)).astype(np.float32)
    writes = np.bincount(alike, wanted.writes).astype(np.float32)

    # The heaviest to begin with; a stable sort, so that ties are settled by the rows' order.
    chosen = np.argsort(-(share * wants.sum(1) + writes), kind="stable")[:most]
    classes, homes = wants[chosen], home[chosen]
    of = _cheapest(wants, home, share, writes, classes, homes)
    if len(first) > most:
        for _ in range(_ROUNDS):
            classes, homes = _settle(wants, home, share, writes, of, classes, homes, least)
            before, of = of, _cheapest(wants, home, share, writes, classes, homes)
            if np.array_equal(before, of):
                break
    used, of = np.unique(of, return_inverse=True)
    return Classes(of.reshape(-1)[alike], classes[used] > 0, homes[used])


def _cheapest(wants: Matrix, home: Numbers, share: Matrix, writes: Matrix, classes: Matrix, homes: Numbers) -> Numbers:
    size, found = classes.sum(1), np.empty(len(wants), np.int64)
    for at in range(0, len(wants), _CHUNK):
        some = slice(at, at + _CHUNK)
        both = wants[some] @ classes.T
        missing, spare = wants[some].sum(1)[:, None] - both, size - both
        # Another home: the writes go farther, as if to one more.
        away = home[some][:, None] != homes
        found[some] = np.argmin(share[some, None] * missing + writes[some, None] * (spare + away), axis=1)
    return found


def _settle(
    wants: Matrix, home: Numbers, share: Matrix, writes: Matrix, of: Numbers, classes: Matrix, homes: Numbers, least: int
) -> tuple[Matrix, Numbers]:
    """The sites that are worth more to a class's records than they cost, and the home that most of its writes have."""
    worth, at_home = np.zeros_like(classes), np.zeros_like(classes)
    np.add.at(worth, of, wants * share[:, None] - (1 - wants) * writes[:, None])
    np.add.at(at_home, (of, home), writes + np.float32(1e-6))
    used = np.bincount(of, minlength=len(classes)) > 0
    homes = np.where(used, at_home.argmax(1), homes)
    worth[np.arange(len(classes)), homes] = np.inf
    enough = np.argsort(-worth, axis=1, kind="stable")[:, :least]
    settled = (worth > 0).astype(np.float32)
    np.put_along_axis(settled, enough, 1, axis=1)
    return np.where(used[:, None], settled, classes), homes

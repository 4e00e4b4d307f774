# SPDX-License-Identifier: Apache-2.0
"""The replica-controllers of a record, found by consistent hashing (Auspice, section 1.2). They know its replica set."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from frontage.maglev import Backend, table

PARTITIONS = 64
"""Partitions of the directory. A GUID never changes its partition; a partition changes controllers as sites come and go."""
_SLOTS = 1 << 14
"""Slots on the ring: 64 for each of 255 sites, so that shares differ by less than 2 %."""


def partition(guid: str) -> int:
    """Return the partition of a GUID."""
    return _hash(guid) % PARTITIONS


class Ring:
    """The sites on the ring to which partitions are hashed."""

    def __init__(self, sites: Iterable[int], controllers: int):
        """``controllers``: number per partition; all sites if there are fewer. Raises ValueError without sites."""
        found = sorted(set(sites))
        if not found:
            raise ValueError("no sites: give at least one")
        self._slots = table([Backend(f"site {site}", site) for site in found], _SLOTS)
        self._controllers = min(controllers, len(found))

    def controllers(self, part: int) -> tuple[int, ...]:
        """Return the site ids of a partition's controllers, consecutive on the ring. The first keeps it; the next are its fallbacks."""
        at = _hash(f"partition {part}") % _SLOTS
        found: dict[int, None] = {}
        for i in range(_SLOTS):
            found.setdefault(self._slots[(at + i) % _SLOTS])
            if len(found) == self._controllers:
                break
        return tuple(found)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2s(text.encode(), digest_size=8, person=b"records").digest(), "big")

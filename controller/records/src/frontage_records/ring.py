"""Which sites know where a record is: its replica-controllers, by consistent hashing (Auspice, section 1.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from frontage.maglev import Backend, table

PARTITIONS = 64
"""Parts of the directory. GUIDs never change theirs; a part changes its controllers when sites come and go."""
_SLOTS = 1 << 14
"""64 for each of 255 sites, so that shares differ by less than 2 %."""


def partition(guid: str) -> int:
    return _hash(guid) % PARTITIONS


class Ring:
    """The sites, on the ring onto which the hash function maps partitions."""

    def __init__(self, sites: Iterable[int], controllers: int):
        """``controllers``: of each partition; all sites if there are fewer. Raises ValueError if there is none."""
        found = sorted(set(sites))
        if not found:
            raise ValueError("no site")
        self._slots = table([Backend(f"site {site}", site) for site in found], _SLOTS)
        self._controllers = min(controllers, len(found))

    def controllers(self, part: int) -> tuple[int, ...]:
        """Site ids, consecutive on the ring; the first keeps the partition, and the next are asked if that is gone."""
        at = _hash(f"partition {part}") % _SLOTS
        found: dict[int, None] = {}
        for i in range(_SLOTS):
            found.setdefault(self._slots[(at + i) % _SLOTS])
            if len(found) == self._controllers:
                break
        return tuple(found)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2s(text.encode(), digest_size=8, person=b"records").digest(), "big")

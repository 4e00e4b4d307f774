# SPDX-License-Identifier: Apache-2.0
"""Maglev consistent hashing with a power-of-two number of slots.

The servers take turns: each takes the next free slot of its own permutation (Maglev, NSDI 2016, section 3.4). The paper uses
a prime number of slots, for which any skip visits all slots. A switch selects a slot with a mask, so here the number of slots
is a power of two and the skip is odd, which also visits all slots.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backend:
    """A server. ``identity`` determines the permutation, so it must be stable across restarts; slots hold the ``sid``."""

    identity: str
    sid: int
    weight: int = 1


def table(backends: Sequence[Backend], slots: int) -> list[int]:
    """Return the SID of each slot. Shares are proportional to weights, and within one slot at equal weights.

    The result does not depend on the order of ``backends``. Raises ValueError if ``slots`` is not a power of two, or if a
    weight is not positive.
    """
    if slots <= 0 or slots & (slots - 1):
        raise ValueError(f"{slots} slots: must be a power of two, because a switch selects a slot with a mask")
    if not backends:
        return []
    heaviest = max(backend.weight for backend in backends)
    if min(backend.weight for backend in backends) < 1:
        raise ValueError("weights must be at least 1")

    mask = slots - 1
    ordered = sorted(backends, key=lambda backend: backend.identity)
    position: list[int] = []
    skip: list[int] = []
    for backend in ordered:
        digest = hashlib.blake2s(backend.identity.encode(), digest_size=8, person=b"maglev").digest()
        position.append(int.from_bytes(digest[:4], "big") & mask)
        skip.append(int.from_bytes(digest[4:], "big") & mask | 1)

    result = [-1] * slots
    credit = [0] * len(ordered)
    filled = 0
    while True:
        for i, backend in enumerate(ordered):
            credit[i] += backend.weight
            if credit[i] < heaviest:
                continue
            credit[i] -= heaviest
            at, step = position[i], skip[i]
            while result[at] >= 0:
                at = (at + step) & mask
            result[at] = backend.sid
            position[i] = (at + step) & mask
            filled += 1
            if filled == slots:
                return result


def without(full: Sequence[int], absent: AbstractSet[int]) -> list[int]:
    """Return ``full`` with the slots of ``absent`` servers given to others. No other slot changes.

    Such a slot takes the server of another slot, chosen pseudorandomly, and of further slots until that server is present.
    Raises ValueError if all servers are absent.
    """
    if not absent:
        return list(full)
    present = sorted(set(full) - absent)
    if not present:
        raise ValueError("no server is left")
    return [_substitute(full, slot, absent, present) if sid in absent else sid for slot, sid in enumerate(full)]


_ATTEMPTS = 32


def _substitute(full: Sequence[int], slot: int, absent: AbstractSet[int], present: Sequence[int]) -> int:
    draw = 0
    for attempt in range(_ATTEMPTS):
        digest = hashlib.blake2s(struct.pack(">II", slot, attempt), digest_size=8, person=b"maglev").digest()
        draw = int.from_bytes(digest, "big")
        sid = full[draw % len(full)]
        if sid not in absent:
            return sid
    # Nearly all servers are absent.
    return present[draw % len(present)]

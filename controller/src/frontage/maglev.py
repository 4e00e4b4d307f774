# SPDX-License-Identifier: Apache-2.0
"""Maglev consistent hashing with a power-of-two number of slots.

The servers take turns: each takes the next free slot of its own permutation (Maglev, NSDI 2016, section 3.4). The paper uses
a prime number of slots, for which any skip visits all slots. A switch selects a slot with a mask, so here the number of slots
is a power of two and the skip is odd, which also visits all slots.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Container, Mapping, Sequence
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


def thinned(full: Sequence[int], shares: Mapping[int, int]) -> list[int]:
    """Return ``full`` with a part of the slots of some servers given to others. No other slot changes.

    ``shares`` are the percentages of their slots that these servers keep, by SID: 0 for absent servers. A larger share keeps the
    slots of a smaller one. A slot that is given away takes the server of another slot, chosen pseudorandomly, and of further slots
    until that server has all its slots. Raises ValueError if no server has.
    """
    if not shares:
        return list(full)
    whole = sorted(set(full) - shares.keys())
    if not whole:
        raise ValueError("no server is left")
    return [
        _substitute(full, slot, shares, whole) if sid in shares and not _is_kept(slot, shares[sid]) else sid
        for slot, sid in enumerate(full)
    ]


def _is_kept(slot: int, percent: int) -> bool:
    """Return whether the slot is among the ``percent`` percent that a server keeps."""
    digest = hashlib.blake2s(struct.pack(">I", slot), digest_size=8, person=b"share").digest()
    return int.from_bytes(digest, "big") % 100 < percent


_ATTEMPTS = 32


def _substitute(full: Sequence[int], slot: int, excluded: Container[int], others: Sequence[int]) -> int:
    draw = 0
    for attempt in range(_ATTEMPTS):
        digest = hashlib.blake2s(struct.pack(">II", slot, attempt), digest_size=8, person=b"maglev").digest()
        draw = int.from_bytes(digest, "big")
        sid = full[draw % len(full)]
        if sid not in excluded:
            return sid
    # Nearly all servers are excluded.
    return others[draw % len(others)]

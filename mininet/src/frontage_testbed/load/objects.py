# SPDX-License-Identifier: Apache-2.0
"""The objects that the servers serve: files of exact sizes with content that every client can verify.

Every object is a prefix of one endless byte sequence: a seeded block of a prime number of bytes, repeated. A client
compares received bytes with the sequence at the same offset, so it detects missing, swapped and foreign bytes. The
period is prime, so it also detects a shift by any number of whole segments.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

PERIOD = 1_048_573


def pattern(period: int = PERIOD) -> bytes:
    """Return one period of the content."""
    return random.Random("frontage objects").randbytes(period)


class Content:
    """Compares received bytes with the sequence."""

    def __init__(self, longest_read: int) -> None:
        """`longest_read` is the maximum number of bytes per call of `matches`."""
        block = pattern()
        # Enough for a read that begins at the last byte of the period.
        self._bytes = block + (block * (longest_read // PERIOD + 1))[:longest_read]

    def matches(self, offset: int, received: memoryview) -> bool:
        """Return whether `received` is the object's content from `offset` on."""
        # This copies nothing. Comparing two memoryviews would loop over single bytes.
        return self._bytes.startswith(received, offset % PERIOD)


def write_objects(directory: Path, sizes: Iterable[int]) -> None:
    """Write one object for each size, named after its size."""
    block = pattern()
    directory.mkdir(parents=True, exist_ok=True)
    for size in sorted(set(sizes)):
        with (directory / str(size)).open("wb") as file:
            for start in range(0, size, PERIOD):
                file.write(block[: min(PERIOD, size - start)])

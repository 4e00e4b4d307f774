"""The objects that the servers serve: files of exact sizes whose content every client can check.

Every object is a prefix of one endless byte sequence: a seeded block of a prime number of bytes, repeated. A client
compares what it receives with the sequence at the same offset, so bytes that are missing, swapped or from another
flow do not go unseen; since the period is prime, a shift by any number of whole segments shows too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

PERIOD = 1_048_573


def pattern(period: int = PERIOD) -> bytes:
    """One period of the content."""
    return random.Random("frontage objects").randbytes(period)


class Content:
    """Checks received bytes against the sequence."""

    def __init__(self, longest_read: int) -> None:
        """`longest_read` is the largest number of bytes that one call of `matches` is given."""
        block = pattern()
        # Long enough for a read that begins at the period's last byte.
        self._bytes = block + (block * (longest_read // PERIOD + 1))[:longest_read]

    def matches(self, offset: int, received: memoryview) -> bool:
        """Whether `received` is the object's content from `offset` on."""
        # Copies nothing, and two memoryviews would be compared byte by byte in a loop of Python's.
        return self._bytes.startswith(received, offset % PERIOD)


def write_objects(directory: Path, sizes: Iterable[int]) -> None:
    """Write one object for each size, named by it."""
    block = pattern()
    directory.mkdir(parents=True, exist_ok=True)
    for size in sorted(set(sizes)):
        with (directory / str(size)).open("wb") as file:
            for start in range(0, size, PERIOD):
                file.write(block[: min(PERIOD, size - start)])

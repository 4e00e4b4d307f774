# SPDX-License-Identifier: Apache-2.0
"""Limits on moves: their number and their bytes per second."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Bucket:
    """A token bucket with a capacity of one second. A larger amount makes it negative, and the next one waits."""

    rate: float
    """Tokens per second."""
    _tokens: float = 0.0
    _at: float | None = None

    def delay(self, amount: float, now: float) -> float:
        """Take ``amount`` tokens, and return the seconds to wait before their use."""
        if self._at is None:
            self._tokens = self.rate
        else:
            self._tokens = min(self.rate, self._tokens + (now - self._at) * self.rate)
        self._at = now
        wait = max(0.0, -self._tokens / self.rate)
        self._tokens -= amount
        return wait


class MoveLimits:
    """The limits of one placer."""

    def __init__(self, moves_per_second: float, bytes_per_second: float):
        self._moves = Bucket(moves_per_second)
        self._bytes = Bucket(bytes_per_second)

    def delay(self, size: int, now: float) -> float:
        """Return the seconds to wait before a move that copies ``size`` bytes."""
        return max(self._moves.delay(1, now), self._bytes.delay(size, now))

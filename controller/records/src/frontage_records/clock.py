# SPDX-License-Identifier: Apache-2.0
"""A hybrid logical clock (Kulkarni and others, 2014): stamps near physical time that respect causality.

A stamp is one integer, microseconds since the Unix epoch. The logical part is added to the physical part: a clock that has seen a
stamp that is not in the past continues from it in steps of a microsecond. With at most a million events per second, stamps stay
within the largest difference between two clocks, and have the same format as the stamps that clients send.
"""

from __future__ import annotations

from frontage_records.record import Clock, now_us


class HybridClock:
    """The clock of one process."""

    def __init__(self, physical: Clock = now_us):
        self.physical = physical
        self._last = 0

    def observe(self, stamp: int) -> None:
        """Record a received stamp: all later results of `tick` are greater."""
        self._last = max(self._last, stamp)

    def tick(self) -> int:
        """Return the stamp of a new event."""
        self._last = max(self.physical(), self._last + 1)
        return self._last

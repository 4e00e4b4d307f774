# SPDX-License-Identifier: Apache-2.0
"""Reference model of AIFO on one port: the paper's algorithm (Yu et al., SIGCOMM 2021) in rational
numbers, without the switch's tables and formulas."""

from collections import deque
from fractions import Fraction


class Aifo:
    """One port: capacity C, c queued packets, a window of W ranks that one packet in `sample` enters, headroom k."""

    def __init__(self, capacity: int, window: int, sample: int, k: Fraction, report_every: int = 1):
        self.capacity, self.size, self.sample, self.k, self.report_every = capacity, window, sample, k, report_every
        self.ranks: deque[int] = deque(maxlen=window)
        """The sampled ranks, oldest first. Missing ranks never count as smaller."""
        self.waiting = 0
        self._arrived = 0
        self._departed = 0

    def admits(self, rank: int) -> bool:
        """Return whether an arriving packet is admitted. One in `sample` then enters the window, admitted or not."""
        c, capacity, k = self.waiting, self.capacity, self.k
        quantile = Fraction(sum(other < rank for other in self.ranks), self.size)
        admitted = c <= k * capacity or quantile <= 1 / (1 - k) * Fraction(capacity - c, capacity)
        if admitted:
            self.waiting = min(c + 1, capacity)  # the queue itself drops packets when it is full
        if self._arrived % self.sample == 0:
            self.ranks.append(rank)
        self._arrived += 1
        return admitted

    def departs(self, left_behind: int) -> bool:
        """Record the queue depth behind a departing packet, and return whether this departure is reported."""
        self._departed += 1
        reported = self._departed % self.report_every == 0
        if reported:
            self.waiting = left_behind
        return reported

    def reports_within(self, departures: int) -> bool:
        """Return whether one of the next `departures` departures is reported."""
        return self._departed % self.report_every + departures >= self.report_every

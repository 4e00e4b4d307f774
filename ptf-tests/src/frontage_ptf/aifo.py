"""What AIFO should do with each packet of a port: the paper's algorithm (Yu et al., SIGCOMM 2021) in rational numbers, with none of the
switch's tables or formulas."""

from collections import deque
from fractions import Fraction


class Aifo:
    """One port: `capacity` C and the waiting packets c, a window of W ranks, one packet in `sample` to enter it, headroom k."""

    def __init__(self, capacity: int, window: int, sample: int, k: Fraction, report_every: int = 1):
        self.capacity, self.size, self.sample, self.k, self.report_every = capacity, window, sample, k, report_every
        self.ranks: deque[int] = deque(maxlen=window)
        """The sampled ranks, oldest first. Until there are W of them, the missing ones are smaller than nobody's."""
        self.waiting = 0
        self._arrived = 0
        self._departed = 0

    def admits(self, rank: int) -> bool:
        """A packet arrives: is it let into the queue? Afterwards, one in `sample` enters the window, refused or not."""
        c, capacity, k = self.waiting, self.capacity, self.k
        quantile = Fraction(sum(other < rank for other in self.ranks), self.size)
        admitted = c <= k * capacity or quantile <= 1 / (1 - k) * Fraction(capacity - c, capacity)
        if admitted:
            self.waiting = min(c + 1, capacity)  # what enters a full queue is lost there
        if self._arrived % self.sample == 0:
            self.ranks.append(rank)
        self._arrived += 1
        return admitted

    def departs(self, left_behind: int) -> bool:
        """An admitted packet leaves so many in the queue; whether that is one of the departures that are reported."""
        self._departed += 1
        reported = self._departed % self.report_every == 0
        if reported:
            self.waiting = left_behind
        return reported

    def reports_within(self, departures: int) -> bool:
        """Whether one of so many departures to come is reported."""
        return self._departed % self.report_every + departures >= self.report_every

# SPDX-License-Identifier: Apache-2.0
"""Reference model of PACKS on one port (Alcoz et al., NSDI 2025) in rational numbers, without the switch's tables and
formulas."""

from collections import deque
from fractions import Fraction


class Packs:
    """One port: capacity C in equal parts for `queues` strict priorities, a window of W ranks that one packet in `sample` enters,
    headroom k."""

    def __init__(self, capacity: int, window: int, sample: int, k: Fraction, queues: int = 8):
        self.capacity, self.size, self.sample, self.k = capacity, window, sample, k
        self.ranks: deque[int] = deque(maxlen=window)
        """The sampled ranks, oldest first. Missing ranks never count as smaller."""
        self.room = capacity // queues
        """Capacity of each queue."""
        self.waiting = [0] * queues
        """Packets in each queue, the most urgent first."""
        self._arrived = 0

    def admits(self, rank: int) -> bool:
        """Enqueue an arriving packet if a queue accepts it. One in `sample` then enters the window, admitted or not."""
        quantile = Fraction(sum(other < rank for other in self.ranks), self.size)
        chosen = next((i for i, waiting in enumerate(self.waiting) if waiting < self.room and quantile <= self._bound(i)), None)
        if chosen is not None:
            self.waiting[chosen] += 1
        if self._arrived % self.sample == 0:
            self.ranks.append(rank)
        self._arrived += 1
        return chosen is not None

    def _bound(self, queue: int) -> Fraction:
        """Return the largest quantile that this queue accepts."""
        free = sum(self.room - waiting for waiting in self.waiting[: queue + 1])
        return 1 / (1 - self.k) * Fraction(free, self.capacity)

    def departs(self, left_behind: int) -> None:
        """Record that packets departed, the most urgent first, until at most `left_behind` were waiting."""
        departed = max(0, sum(self.waiting) - left_behind)
        for queue, waiting in enumerate(self.waiting):
            served = min(waiting, departed)
            self.waiting[queue] -= served
            departed -= served

# SPDX-License-Identifier: Apache-2.0
"""Reference model of RIFO on one port (Mostafaei et al., arXiv 2308.07442) in rational numbers."""

from fractions import Fraction


class Rifo:
    """One port: capacity C, c queued packets, the ranks since the last restart, which every `interval` packets bring, headroom k.

    With `as_published_code`, the free share of the queue is compared as in the authors' programs.
    """

    def __init__(self, capacity: int, interval: int, k: Fraction, *, as_published_code: bool = False):
        self.capacity, self.interval, self.k, self.as_published_code = capacity, interval, k, as_published_code
        self.ranks: list[int] = []
        self.waiting = 0

    def admits(self, rank: int) -> bool:
        """Return whether an arriving packet is admitted. Its rank belongs to the range, admitted or not."""
        if len(self.ranks) == self.interval:
            self.ranks = []
        self.ranks.append(rank)
        c = self.waiting
        admitted = c <= self.k * self.capacity or self._is_urgent(rank, Fraction(self.capacity - c, self.capacity))
        if admitted:
            self.waiting = min(c + 1, self.capacity)  # the queue itself drops packets when it is full
        return admitted

    def _is_urgent(self, rank: int, free: Fraction) -> bool:
        smallest, largest = min(self.ranks), max(self.ranks)
        if smallest == largest:
            return True
        position = Fraction(rank - smallest, largest - smallest)
        return 1 - position >= free if self.as_published_code else position <= free

    def departs(self, left_behind: int) -> None:
        """Record the queue depth behind a departing packet."""
        self.waiting = left_behind

# SPDX-License-Identifier: Apache-2.0
"""Reference model of the tournament tree of a VIP."""

from frontage_ptf.site import Vip


class Leaves:
    """Headroom (16 bits) over SID (16 bits) by slot, zero for an empty slot; and, for each node, the largest value of its
    leaves.

    A value is headroom (16 bits) over tie (4 bits) over SID (12 bits). The tie is part of a hash: that of the packet's
    connection, or zero for the controller's operations. A report that repeats the last one changes nothing, and so
    does not draw the tie anew."""

    FULL = 0xFFFF
    LEVELS = 12
    UNKNOWN = -1

    def __init__(self) -> None:
        self._reported: dict[int, int | None] = {}
        self.at: dict[int, int] = {}
        self._nodes: dict[tuple[int, int], int] = {}

    def headroom(self, slot: int) -> int:
        return self.at.get(slot, 0) >> 16

    def _write(self, slot: int, leaf: int, hash: int) -> None:
        self.at[slot] = leaf
        best = (leaf >> 16) << 16 | (hash >> 16 & 0xF) << 12 | leaf & 0xFFF
        for level in range(self.LEVELS + 1):
            self._nodes[level, slot >> level] = best
            best = max(best, self._nodes.get((level, (slot >> level) ^ 1), 0))

    def _score(self, slot: int, sid: int, headroom: int, hash: int) -> None:
        self._write(slot, min(self.FULL, max(1, headroom)) << 16 | sid, hash)

    def _as_reported(self, score: int | None) -> int | None:
        return None if score is None else max(1, self.FULL - score)

    def report(self, slot: int, sid: int, score: int | None, hash: int) -> None:
        """Take the score that a server reports, None if it is not active."""
        if self._reported.get(slot) == self._as_reported(score):
            return
        if score is None:
            self.clear(slot, hash)
        else:
            self.set(slot, sid, score, hash)

    def set(self, slot: int, sid: int, score: int, hash: int = 0) -> None:
        self._reported[slot] = self._as_reported(score)
        self._score(slot, sid, self.FULL - score, hash)

    def add(self, slot: int, sid: int, unit: int, hash: int = 0) -> None:
        """Count a connection that began."""
        self._reported[slot] = self.UNKNOWN
        if self.headroom(slot):
            self._score(slot, sid, self.headroom(slot) - unit, hash)

    def sub(self, slot: int, sid: int, unit: int, hash: int = 0) -> None:
        """Count a connection that ended."""
        self._reported[slot] = self.UNKNOWN
        if self.headroom(slot):
            self._score(slot, sid, self.headroom(slot) + unit, hash)

    def seed(self, slot: int, sid: int) -> None:
        self._reported[slot] = self.UNKNOWN
        known = self.headroom(slot) and self.at[slot] & 0xFFFF == sid
        self._score(slot, sid, self.headroom(slot) if known else self.FULL, 0)

    def clear(self, slot: int, hash: int = 0) -> None:
        self._reported[slot] = None
        self._write(slot, 0, hash)

    def best(self, vip: Vip) -> int | None:
        """Return the SID with the lowest score."""
        root = self.root(vip)
        return root & 0xFFF if root >> 16 else None

    def root(self, vip: Vip) -> int:
        """Return the largest value of the tree."""
        return self._nodes.get((vip.tree_depth, vip.tree_base >> vip.tree_depth), 0)

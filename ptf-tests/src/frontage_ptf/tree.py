# SPDX-License-Identifier: Apache-2.0
"""Reference model of the tournament tree of a VIP."""

from frontage_ptf.site import Vip


class Leaves:
    """Headroom (16 bits) over SID (16 bits) by slot, zero for an empty slot; and, for each node, the winners of its
    two children.

    A bit of a hash breaks ties: that of the packet's connection, or zero for the controller's operations. On Tofino
    (`filters`), a report that repeats the last one changes nothing, and so does not break ties anew."""

    FULL = 0xFFFF
    LEVELS = 12
    UNKNOWN = -1

    def __init__(self, filters: bool = False) -> None:
        self.filters = filters
        self._reported: dict[int, int | None] = {}
        self.at: dict[int, int] = {}
        self._nodes: dict[tuple[int, int], list[int]] = {}

    def headroom(self, slot: int) -> int:
        return self.at.get(slot, 0) >> 16

    def _write(self, slot: int, leaf: int, hash: int) -> None:
        self.at[slot] = best = leaf
        for level in range(1, self.LEVELS + 1):
            pair = self._nodes.setdefault((level, slot >> level), [0, 0])
            pair[slot >> level - 1 & 1] = best
            best = self._better(pair, level, hash)

    @staticmethod
    def _better(pair: list[int], level: int, hash: int) -> int:
        one, other = (leaf >> 16 for leaf in pair)
        return pair[other > one or (other == one and hash >> 16 + level & 1)]

    def _score(self, slot: int, sid: int, headroom: int, hash: int) -> None:
        self._write(slot, min(self.FULL, max(1, headroom)) << 16 | sid, hash)

    def report(self, slot: int, sid: int, score: int | None, hash: int) -> None:
        """Take the score that a server reports, None if it is not active."""
        if self.filters and self._reported.get(slot) == score:
            return
        if score is None:
            self.clear(slot, hash)
        else:
            self.set(slot, sid, score, hash)

    def set(self, slot: int, sid: int, score: int, hash: int = 0) -> None:
        self._reported[slot] = score
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

    def best(self, vip: Vip, hash: int = 0) -> int | None:
        """Return the SID with the lowest score, for the packet of a connection with this hash."""
        best = self._better(self.halves(vip), vip.tree_depth, hash)
        return best & 0xFFFF if best else None

    def halves(self, vip: Vip) -> list[int]:
        """Return the winners of both halves of the tree. A tree of one slot has no right half."""
        depth = vip.tree_depth
        if depth == 0:
            return [self.at.get(vip.tree_base, 0), 0]
        return self._nodes.get((depth, vip.tree_base >> depth), [0, 0])

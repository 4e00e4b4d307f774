# SPDX-License-Identifier: Apache-2.0
"""Reference model of the tournament tree of a VIP."""

from frontage_ptf.site import Vip


class Leaves:
    """Headroom (16 bits) over SID (16 bits) by slot, zero for an empty slot; and, for each node, what its children sent up.

    A value that goes up is headroom (16 bits) over tie (4 bits) over SID (12 bits). Four bits of a hash decide between
    equal scores: the hash of the packet's connection, or zero for the controller's operations. On Tofino, a leaf keeps
    the bits of its last update as its tie. With v1model, ties are zero, and each packet, also one that only reads the
    root, uses its own bits at every node. A report that repeats the last one changes nothing, and so does not draw
    anew."""

    FULL = 0xFFFF
    LEVELS = 12
    UNKNOWN = -1

    def __init__(self, keeps_ties: bool) -> None:
        """Make empty trees; `keeps_ties` is true for Tofino."""
        self._keeps_ties = keeps_ties
        self._reported: dict[int, int | None] = {}
        self.at: dict[int, int] = {}
        self._sent: dict[int, int] = {}
        self._children: dict[tuple[int, int], list[int]] = {}

    def headroom(self, slot: int) -> int:
        return self.at.get(slot, 0) >> 16

    def _write(self, slot: int, leaf: int, hash: int) -> None:
        self.at[slot] = leaf
        tie = hash >> 16 & 0xF if self._keeps_ties else 0
        best = self._sent[slot] = (leaf >> 16) << 16 | tie << 12 | leaf & 0xFFF
        for level in range(1, self.LEVELS + 1):
            children = self._children.setdefault((level, slot >> level), [0, 0])
            children[slot >> level - 1 & 1] = best
            best = self._better(children, level, hash)

    def _better(self, children: list[int], level: int, hash: int) -> int:
        left, right = children
        if self._keeps_ties or left >> 16 != right >> 16:
            return max(children)
        return right if hash >> 16 + level % 4 & 1 else left

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

    def best(self, vip: Vip, hash: int = 0) -> int | None:
        """Return the SID with the lowest score, for a packet whose connection has this hash."""
        root = self.root(vip, hash)
        return root & 0xFFF if root >> 16 else None

    def root(self, vip: Vip, hash: int = 0) -> int:
        """Return the largest value of the tree, for a packet whose connection has this hash."""
        depth, base = vip.tree_depth, vip.tree_base
        if depth == 0:
            return self._sent.get(base, 0)
        return self._better(self._children.get((depth, base >> depth), [0, 0]), depth, hash)

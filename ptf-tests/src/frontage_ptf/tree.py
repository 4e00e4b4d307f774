"""What the tournament tree of a VIP should choose."""

from frontage_ptf.site import Vip


class Leaves:
    """Headroom (16 bits) over SID (16 bits) by slot, zero being no server, and above them what both children of each node sent up.

    Of two with the same headroom a bit of a hash decides: of the connection whose packet comes by, or of zero if the controller's does."""

    FULL = 0xFFFF
    LEVELS = 12

    def __init__(self) -> None:
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

    def set(self, slot: int, sid: int, score: int, hash: int = 0) -> None:
        self._score(slot, sid, self.FULL - score, hash)

    def add(self, slot: int, sid: int, unit: int, hash: int = 0) -> None:
        """A flow began."""
        if self.headroom(slot):
            self._score(slot, sid, self.headroom(slot) - unit, hash)

    def sub(self, slot: int, sid: int, unit: int, hash: int = 0) -> None:
        """A flow ended."""
        if self.headroom(slot):
            self._score(slot, sid, self.headroom(slot) + unit, hash)

    def seed(self, slot: int, sid: int) -> None:
        known = self.headroom(slot) and self.at[slot] & 0xFFFF == sid
        self._score(slot, sid, self.headroom(slot) if known else self.FULL, 0)

    def clear(self, slot: int, hash: int = 0) -> None:
        self._write(slot, 0, hash)

    def best(self, vip: Vip, hash: int = 0) -> int | None:
        """The SID of the least score, for the packet of a connection with this hash."""
        depth = vip.tree_depth
        root = self._nodes.get((depth, vip.tree_base >> depth), [0, 0])
        best = self._better(root, depth, hash) if depth else self.at.get(vip.tree_base, 0)
        return best & 0xFFFF if best else None

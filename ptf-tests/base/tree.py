"""What the tournament tree of a VIP should choose: a plain list of leaves, and the largest of them."""


class Leaves:
    """Headroom (16 bits) over SID (16 bits) by slot; zero is no server. The root is the largest leaf, so of equal scores the larger SID."""

    FULL = 0xFFFF

    def __init__(self) -> None:
        self.at: dict[int, int] = {}

    def _headroom(self, slot: int) -> int:
        return self.at.get(slot, 0) >> 16

    def set(self, slot: int, sid: int, score: int) -> None:
        self.at[slot] = max(1, self.FULL - score) << 16 | sid

    def add(self, slot: int, sid: int, unit: int) -> None:
        """A flow began."""
        if self._headroom(slot):
            self.at[slot] = max(1, self._headroom(slot) - unit) << 16 | sid

    def sub(self, slot: int, sid: int, unit: int) -> None:
        """A flow ended."""
        if self._headroom(slot):
            self.at[slot] = min(self.FULL, self._headroom(slot) + unit) << 16 | sid

    def seed(self, slot: int, sid: int) -> None:
        if not self._headroom(slot) or self.at[slot] & 0xFFFF != sid:
            self.at[slot] = self.FULL << 16 | sid

    def clear(self, slot: int) -> None:
        self.at[slot] = 0

    def best(self) -> int | None:
        """The SID of the least score."""
        largest = max(self.at.values(), default=0)
        return largest & 0xFFFF if largest else None

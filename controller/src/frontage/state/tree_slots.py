"""Leaf slots of the tournament trees: an aligned block for every VIP, a slot in it for every server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from frontage import limits


class AllocationError(Exception):
    """The configuration needs more of something than the P4 program has."""


class Block(NamedTuple):
    """An aligned block of ``2 ** depth`` leaf slots: one VIP's tournament tree."""

    base: int
    depth: int

    @property
    def slots(self) -> range:
        return range(self.base, self.base + (1 << self.depth))

    def holds(self, slot: int) -> bool:
        return slot >> self.depth == self.base >> self.depth

    def overlaps(self, other: Block) -> bool:
        return self.holds(other.base) or other.holds(self.base)

    @property
    def parent(self) -> Block:
        depth = self.depth + 1
        return Block(self.base >> depth << depth, depth)


def place(depths: Mapping[str, int], trees: Mapping[int, Block], vip_ids: Mapping[str, int]) -> dict[str, Block]:
    """A block for every VIP: the installed one while it is large enough, else one that contains it, else a free one.

    ``depths`` and ``vip_ids`` are by VIP, the installed ``trees`` by VIP id. Raises AllocationError.
    """
    kept: dict[str, Block] = {}
    installed = {name: trees[vip_ids[name]] for name in depths if vip_ids[name] in trees}
    for name, block in installed.items():
        if block.depth >= depths[name] and not any(block.overlaps(other) for other in kept.values()):
            kept[name] = block
    # Largest first: then blocks of powers of two fit without gaps.
    largest_first = sorted(depths, key=lambda name: (-depths[name], vip_ids[name]))
    rest = [name for name in largest_first if name not in kept]
    # If possible, blocks that VIPs leave are avoided (servers report into them until their entries are gone), and the block
    # beside a new one is left free, for it to grow into.
    left = set(trees.values())
    for avoided, spare in ((left, 1), (left, 0), (set[Block](), 0)):
        placed = dict(kept)
        free = _FreeSlots([*kept.values(), *avoided])
        for name in rest:
            found = None
            if name in installed:
                others = {*placed.values(), *(avoided - {installed[name]})}
                found = _grow(installed[name], depths[name], others)
            if found is None:
                taken = free.take(depths[name] + spare)
                if taken is None:
                    break
                free.mark(taken)
                found = Block(taken.base, depths[name])
            free.mark(found)
            placed[name] = found
        else:
            return placed
    # Fragmented: lay all blocks out anew.
    free = _FreeSlots([])
    placed = {}
    for name in largest_first:
        found = free.take(depths[name])
        if found is None:
            raise AllocationError(
                f"the VIPs need more than {limits.TREE_SLOTS} tree slots (each takes the next power of two of its servers); "
                "remove VIPs that have no servers, or some servers"
            )
        free.mark(found)
        placed[name] = found
    return placed


def _grow(block: Block, depth: int, others: Iterable[Block]) -> Block | None:
    """The block of this depth that contains ``block``, so that slots keep their numbers; None if it is not free."""
    while block.depth < depth:
        block = block.parent
    return None if any(block.overlaps(other) for other in others) else block


class _FreeSlots:
    """First-fit search of aligned blocks. Depths must be asked for in descending order."""

    def __init__(self, taken: Iterable[Block]):
        self._used = bytearray(limits.TREE_SLOTS)
        self._cursor: dict[int, int] = {}
        for block in taken:
            self.mark(block)

    def mark(self, block: Block) -> None:
        self._used[block.slots.start : block.slots.stop] = b"\1" * len(block.slots)

    def take(self, depth: int) -> Block | None:
        size = 1 << depth
        for base in range(self._cursor.get(depth, 0), limits.TREE_SLOTS, size):
            if not any(self._used[base : base + size]):
                self._cursor[depth] = base
                return Block(base, depth)
        return None


def leaves(block: Block, vip_id: int, sids: Iterable[int], installed: Mapping[tuple[int, int], int]) -> dict[int, int]:
    """A slot of the VIP's block for every SID: the installed one, by (VIP id, SID), where it is in the block."""
    slots: dict[int, int] = {}
    used: set[int] = set()
    new: list[int] = []
    for sid in sids:
        slot = installed.get((vip_id, sid))
        if slot is None or not block.holds(slot) or slot in used:
            new.append(sid)
        else:
            slots[sid] = slot
            used.add(slot)
    occupied = {slot for (vip, _), slot in installed.items() if vip == vip_id} if new else set()
    free = [slot for slot in block.slots if slot not in used]
    # A slot that a removed server leaves is taken last: it reports there until its entries are gone.
    free.sort(key=lambda slot: slot in occupied)
    slots.update(zip(sorted(new), free, strict=False))
    return slots

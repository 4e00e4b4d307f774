# SPDX-License-Identifier: Apache-2.0
"""Leaf slots of the tournament trees: an aligned block of slots for every VIP, with a slot for every server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from frontage import limits


class AllocationError(Exception):
    """The configuration does not fit into the P4 program's tables."""


class Block(NamedTuple):
    """An aligned block of ``2 ** depth`` leaf slots: the tournament tree of one VIP."""

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
    """Return a block for every VIP: the installed one if it is large enough, else one that contains it, else a free one.

    ``depths`` and ``vip_ids`` are by VIP name, the installed ``trees`` by VIP id. Raises AllocationError.
    """
    kept: dict[str, Block] = {}
    installed = {name: trees[vip_ids[name]] for name in depths if vip_ids[name] in trees}
    for name, block in installed.items():
        if block.depth >= depths[name] and not any(block.overlaps(other) for other in kept.values()):
            kept[name] = block
    # Largest first, so that blocks of powers of two fit without gaps.
    largest_first = sorted(depths, key=lambda name: (-depths[name], vip_ids[name]))
    rest = [name for name in largest_first if name not in kept]
    # Avoid the blocks that VIPs leave, into which servers report until their entries are gone, and leave the block next to a
    # new one free for growth, if there is room.
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
    # The free slots are fragmented: place all blocks anew.
    free = _FreeSlots([])
    placed = {}
    for name in largest_first:
        found = free.take(depths[name])
        if found is None:
            raise AllocationError(
                f"the VIPs need more than {limits.TREE_SLOTS} tree slots (each takes the next power of two of its servers): "
                "remove VIPs that have no servers, or some servers"
            )
        free.mark(found)
        placed[name] = found
    return placed


def _grow(block: Block, depth: int, others: Iterable[Block]) -> Block | None:
    """Return the block of this depth that contains ``block``, so that slots keep their numbers; None if it is not free."""
    while block.depth < depth:
        block = block.parent
    return None if any(block.overlaps(other) for other in others) else block


class _FreeSlots:
    """First-fit search for aligned blocks. Callers take blocks in descending order of depth."""

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
    """Return a slot of the VIP's block for every SID, the installed one if it is in the block.

    ``installed`` slots are by (VIP id, SID).
    """
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
    # Take slots of removed servers last: these servers report into them until their entries are gone.
    free.sort(key=lambda slot: slot in occupied)
    slots.update(zip(sorted(new), free, strict=False))
    return slots

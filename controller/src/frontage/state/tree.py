# SPDX-License-Identifier: Apache-2.0
"""``tree.p4``: operations on the leaves of the tournament trees. They are packets, because BMv2 has no access to registers.

Seeding a leaf keeps its score if the leaf has one for the same server, otherwise the score starts at zero. A cleared leaf gets
no new flows. All operations may be repeated at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from finsy.proto import p4r

from frontage.p4.p4info import Schema
from frontage.state.allocation import Installed
from frontage.state.resolved import ResolvedVip
from frontage.state.tree_slots import Block


class Op(IntEnum):
    """The operations of the ``packet_out`` header that the controller uses."""

    SEED = 4
    CLEAR = 5


class LeafOp(NamedTuple):
    """An operation on one leaf."""

    op: Op
    depth: int
    slot: int
    sid: int


class LeafOps(NamedTuple):
    """The operations of a reconciliation."""

    before: list[LeafOp]
    """To send before policies lead to the leaves."""
    after: list[LeafOp]
    """To send after all deletions, when no deleted entry writes leaves any more."""


def leaf_ops(vips: Sequence[ResolvedVip], installed: Installed, *, resync: bool) -> LeafOps:
    """Return the operations that a change of configuration needs; with ``resync``, those for unknown leaves."""
    before: list[LeafOp] = []
    after: list[LeafOp] = []
    old_slots: dict[int, dict[int, int]] = {}
    for (vip_id, sid), slot in installed.slots.items():
        old_slots.setdefault(vip_id, {})[sid] = slot
    for vip in vips:
        vip_id, block = vip.id, vip.tree
        occupants = {server.slot: server.config for server in vip.servers}
        slots = {server.config.sid: server.slot for server in vip.servers}
        old = old_slots.pop(vip_id, {})
        if resync or installed.trees.get(vip_id) != block:
            # Writing every leaf updates every node above.
            for slot in block.slots:
                server = occupants.get(slot)
                if server is not None and server.active:
                    before.append(LeafOp(Op.SEED, block.depth, slot, server.sid))
                else:
                    before.append(LeafOp(Op.CLEAR, block.depth, slot, 0))
            continue
        left = {slot for sid, slot in old.items() if slots.get(sid) != slot}
        for slot, server in occupants.items():
            was_active = old.get(server.sid) == slot and (vip_id, server.sid) in installed.active
            if server.active and not was_active:
                # A server that leaves a slot may report into it until its entries are gone.
                (after if slot in left else before).append(LeafOp(Op.SEED, block.depth, slot, server.sid))
            elif not server.active and was_active:
                after.append(LeafOp(Op.CLEAR, block.depth, slot, server.sid))
        taken = {slot for slot, server in occupants.items() if server.active}
        after += (LeafOp(Op.CLEAR, block.depth, slot, 0) for slot in sorted(left - taken))
    after += _abandoned(old_slots, [vip.tree for vip in vips], installed)
    return LeafOps(before, after)


def _abandoned(old_slots: dict[int, dict[int, int]], taken: Sequence[Block], installed: Installed) -> Iterator[LeafOp]:
    """Yield operations that clear the leaves of removed VIPs."""
    for vip_id, slots in old_slots.items():
        block = installed.trees.get(vip_id)
        if block is None or any(block.overlaps(other) for other in taken):
            continue
        for slot in sorted(slots.values()):
            yield LeafOp(Op.CLEAR, block.depth, slot, 0)


def packets(schema: Schema, ops: Iterable[LeafOp]) -> Iterator[p4r.PacketOut]:
    """Yield the packets that carry the operations."""
    for op in ops:
        # Some targets require a payload.
        yield schema.packet_out_of(b"\0", op=op.op, depth=op.depth, slot=op.slot, sid=op.sid, score=0)

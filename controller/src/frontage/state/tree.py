"""``tree.p4``: operations on the leaves of the tournament trees, sent as packets because BMv2 lets nobody write registers.

A leaf that is seeded keeps the score that it has; one without a score, or of another server, begins at zero. A leaf that is
cleared gets no new flows. All of it may be repeated at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from finsy.proto import p4r

from frontage.config import Config
from frontage.p4.p4info import PipelineError, Schema, to_bytes
from frontage.state.allocation import Allocation, Installed
from frontage.state.tree_slots import Block


class Op(IntEnum):
    """Operations of the program's ``packet_out`` header that the controller needs."""

    SEED = 4
    CLEAR = 5


class LeafOp(NamedTuple):
    op: Op
    depth: int
    slot: int
    sid: int


class LeafOps(NamedTuple):
    before: list[LeafOp]
    """To be sent before policies lead to the leaves."""
    after: list[LeafOp]
    """To be sent when nothing that was deleted writes leaves any more."""


def leaf_ops(config: Config, allocation: Allocation, installed: Installed, *, resync: bool) -> LeafOps:
    """The operations that a change of configuration needs; with ``resync``, those for a switch whose leaves are unknown."""
    before: list[LeafOp] = []
    after: list[LeafOp] = []
    old_slots: dict[int, dict[int, int]] = {}
    for (vip_id, sid), slot in installed.slots.items():
        old_slots.setdefault(vip_id, {})[sid] = slot
    for name, servers in config.servers_by_vip.items():
        vip_id, block = allocation.vip_ids[name], allocation.trees[name]
        occupants = {allocation.slots[server.sid]: server for server in servers}
        old = old_slots.pop(vip_id, {})
        if resync or installed.trees.get(vip_id) != block:
            # Touching every leaf brings every node above up to date, whatever it held.
            for slot in block.slots:
                server = occupants.get(slot)
                if server is not None and server.active:
                    before.append(LeafOp(Op.SEED, block.depth, slot, server.sid))
                else:
                    before.append(LeafOp(Op.CLEAR, block.depth, slot, 0))
            continue
        left = {slot for sid, slot in old.items() if allocation.slots.get(sid) != slot}
        for slot, server in occupants.items():
            was_active = old.get(server.sid) == slot and (vip_id, server.sid) in installed.active
            if server.active and not was_active:
                # A slot that another server leaves may be reported into until that server's entries are gone.
                (after if slot in left else before).append(LeafOp(Op.SEED, block.depth, slot, server.sid))
            elif not server.active and was_active:
                after.append(LeafOp(Op.CLEAR, block.depth, slot, server.sid))
        taken = {slot for slot, server in occupants.items() if server.active}
        after += (LeafOp(Op.CLEAR, block.depth, slot, 0) for slot in sorted(left - taken))
    after += _abandoned(old_slots, allocation.trees.values(), installed)
    return LeafOps(before, after)


def _abandoned(old_slots: dict[int, dict[int, int]], taken: Iterable[Block], installed: Installed) -> Iterator[LeafOp]:
    """The leaves of VIPs that are gone."""
    taken = list(taken)
    for vip_id, slots in old_slots.items():
        block = installed.trees.get(vip_id)
        if block is None or any(block.overlaps(other) for other in taken):
            continue
        for slot in sorted(slots.values()):
            yield LeafOp(Op.CLEAR, block.depth, slot, 0)


def packets(schema: Schema, ops: Iterable[LeafOp]) -> Iterator[p4r.PacketOut]:
    """The packets that carry these operations."""
    ids = {name: field_id for field_id, name, _ in schema.packet_out}
    missing = {"op", "depth", "slot", "sid", "score"} - ids.keys()
    if missing:
        raise PipelineError(
            f"the P4Info's packet_out header has no field {', '.join(sorted(missing))}; "
            "this controller and the P4 program are of different versions"
        )
    for op in ops:
        # Some targets want a payload.
        packet = p4r.PacketOut(payload=b"\0")
        for name, value in (("op", op.op), ("depth", op.depth), ("slot", op.slot), ("sid", op.sid), ("score", 0)):
            packet.metadata.add(metadata_id=ids[name], value=to_bytes(value))
        yield packet

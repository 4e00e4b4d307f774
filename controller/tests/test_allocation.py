# SPDX-License-Identifier: Apache-2.0
"""Assigned numbers: stable over restarts, unique, and within the sizes of the P4 program."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import EXAMPLE
from frontage import limits
from frontage.config import Config, load, loads
from frontage.cookie import IP6_SIGNAL, TCP_LOAD
from frontage.p4.entries import State, difference
from frontage.state.allocation import Allocation, Installed, allocate
from frontage.state.blocks import ports, vip
from frontage.state.blocks.fallback import ticks
from frontage.state.desired import STAGES, TABLES, TREE_STAGE, desired
from frontage.state.resolved import resolve
from frontage.state.scores import MAX_SCORE, scores
from frontage.state.tree import LeafOp, Op, leaf_ops
from frontage.state.tree_slots import Block
from scale import large_config


def install(config: Config, installed: State) -> tuple[Allocation, State]:
    allocation = allocate(config, Installed(installed))
    return allocation, desired(config, allocation)


def check(config: Config, allocation: Allocation) -> None:
    blocks = list(allocation.trees.values())
    for i, block in enumerate(blocks):
        assert block.base % (1 << block.depth) == 0
        assert block.slots.stop <= limits.TREE_SLOTS
        assert block.depth <= limits.MAX_TREE_DEPTH
        assert not any(block.overlaps(other) for other in blocks[i + 1 :])
    assert len(set(allocation.vip_ids.values())) == len(config.vips)
    assert len(set(allocation.slots.values())) == len(allocation.slots) == len(config.servers)
    for server in config.servers:
        assert allocation.trees[server.vip].holds(allocation.slots[server.sid])
    assert max(allocation.vip_ids.values(), default=0) < limits.MAX_VIPS


def config_of(servers: dict[int, tuple[int, bool]], vips: int) -> Config:
    """Return a configuration with these servers, by SID: their VIP, and whether they are active."""
    head = large_config(0, vips).replace("neighbors:\n", "").replace("servers:\n", "")
    head += "  - {name: spare, address: 203.0.120.1, port: 80}\n"
    rows = [
        f"  - {{name: s{sid}, vip: v{vip}, address: 198.51.100.{sid % 250}, port: {1000 + sid}, sid: {sid},"
        f" state: {'active' if active else 'draining'}}}"
        for sid, (vip, active) in servers.items()
    ]
    return loads(head + "servers:" + ("\n" + "\n".join(rows) if rows else " []") + "\n", Path("x"))


@pytest.mark.parametrize("vips", [1, 2, 3, 300, 511, 512])
def test_largest_configuration_fits(vips: int) -> None:
    config = loads(large_config(limits.MAX_SERVERS, vips), Path("x"))
    allocation, state = install(config, {})
    check(config, allocation)
    again, same = install(config, state)
    assert again == allocation
    assert same == state
    held: dict[str, int] = {}
    for key in state:
        held[key.table] = held.get(key.table, 0) + 1
    assert held["maglev.maglev"] <= limits.MAGLEV_SLOTS
    assert held["assign.pool"] <= limits.POOL_ENTRIES


@settings(max_examples=60)
@given(
    st.lists(st.dictionaries(st.integers(0, 40), st.tuples(st.integers(0, 3), st.booleans()), max_size=30), min_size=1, max_size=6)
)
def test_numbers_are_stable_over_any_sequence_of_configurations(steps: list[dict[int, tuple[int, bool]]]) -> None:
    state: State = {}
    before: tuple[Config, Allocation] | None = None
    for servers in steps:
        config = config_of(servers, 4)
        allocation, state = install(config, state)
        check(config, allocation)
        if before is not None:
            old_config, old = before
            assert allocation.vip_ids == old.vip_ids
            old_vips = {server.sid: server.vip for server in old_config.servers}
            for server in config.servers:
                if old_vips.get(server.sid) == server.vip and allocation.trees[server.vip] == old.trees[server.vip]:
                    assert allocation.slots[server.sid] == old.slots[server.sid]
        before = config, allocation


def test_tree_grows_in_place() -> None:
    state: State = {}
    slots: dict[int, int] = {}
    for count in range(1, 9):
        config = config_of(dict.fromkeys(range(count), (0, True)), 3)
        allocation, state = install(config, state)
        assert slots.items() <= allocation.slots.items() or count > 2
        slots = allocation.slots


def test_next_hops_and_classes_keep_their_numbers() -> None:
    config = load(EXAMPLE)
    first, state = install(config, {})
    text = EXAMPLE.read_text(encoding="utf-8").replace(
        "neighbors:\n", 'neighbors:\n  - { address: 192.0.2.9, port: uplink, mac: "02:00:00:00:02:09" }\n'
    )
    second, _ = install(loads(text.replace("weight: 2", "weight: 3"), EXAMPLE), state)
    assert first.next_hops.items() <= second.next_hops.items()
    common = set(first.classes) & set(second.classes)
    assert common
    assert all(first.classes[one] == second.classes[one] for one in common)
    # A replaced class is not overwritten while servers use it.
    assert not {second.classes[new] for new in set(second.classes) - common} & set(first.classes.values())


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 3), Fraction(1, 256)])
def test_scores(alpha: float, share: Fraction) -> None:
    found = scores(alpha, share)
    for row, factor in ((found.af, alpha), (found.ff, 1 - alpha)):
        assert len(row) == limits.SCORE_CODES
        assert list(row) == sorted(row)
        assert abs(row[5] - 5 * 16 * factor * share) <= 0.5
    # The largest load of a TCP cookie fits; that of an IPv6 cookie is clipped at 4,095 flows.
    most = IP6_SIGNAL.encode(TCP_LOAD.decode(TCP_LOAD.max_code))
    assert found.af[most] + found.ff[most] <= MAX_SCORE
    assert max(found.af[-1], found.ff[-1]) <= MAX_SCORE


def test_block_contains_its_slots() -> None:
    assert Block(4, 2).parent == Block(0, 3)
    assert Block(4, 2).overlaps(Block(0, 3))
    assert not Block(4, 2).overlaps(Block(0, 2))
    assert list(Block(8, 1).slots) == [8, 9]


def test_every_table_belongs_to_one_stage() -> None:
    assert len(set(TABLES)) == len(TABLES)
    state = install(load(EXAMPLE), {})[1]
    assert {key.table for key in state} <= set(TABLES)
    assert sum(len(stage) for stage in STAGES) == len(TABLES)


def test_stages_are_ordered_make_before_break() -> None:
    stage_of = {table: stage for stage, tables in enumerate(STAGES) for table in tables}
    # Leaves are seeded after the servers are known and before a policy uses the trees.
    assert vip.POLICY in STAGES[TREE_STAGE]
    assert stage_of["choice.member"] < TREE_STAGE
    # The tables that open cookies precede the active key, which seals them.
    assert stage_of["open.round0"] < stage_of["masking.active_key"]
    assert stage_of["seal.round0"] < stage_of["masking.active_key"]
    # Ports come last, so that every packet of a server is rewritten.
    assert STAGES[-1] == ports.TABLES


class Trees:
    """A model of the switch's leaves, for the operations of a sequence of reconciliations."""

    def __init__(self) -> None:
        self.leaves: dict[int, int] = {}

    def apply(self, ops: list[LeafOp]) -> None:
        for op in ops:
            if op.op is Op.SEED:
                self.leaves[op.slot] = op.sid
            else:
                self.leaves.pop(op.slot, None)


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 2), st.booleans()), max_size=16), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_leaves_belong_to_active_servers(steps: list[tuple[dict[int, tuple[int, bool]], bool]]) -> None:
    trees = Trees()
    state: State = {}
    for i, (servers, resync) in enumerate(steps):
        config = config_of(servers, 3)
        numbers = Installed(state)
        allocation = allocate(config, numbers)
        ops = leaf_ops(resolve(config, allocation), numbers, resync=resync or i == 0)
        trees.apply(ops.before)
        trees.apply(ops.after)
        state = desired(config, allocation)
        wanted = {allocation.slots[server.sid]: server.sid for server in config.servers if server.active}
        owned = {slot for block in allocation.trees.values() for slot in block.slots}
        assert {slot: sid for slot, sid in trees.leaves.items() if slot in owned} == wanted
        for op in (*ops.before, *ops.after):
            assert op.depth <= limits.MAX_TREE_DEPTH


def test_unchanged_configuration_needs_no_leaf_operations() -> None:
    config = load(EXAMPLE)
    allocation, state = install(config, {})
    ops = leaf_ops(resolve(config, allocation), Installed(state), resync=False)
    assert ops == ([], [])


def test_difference() -> None:
    config = load(EXAMPLE)
    state = install(config, {})[1]
    assert len(difference(state, state)) == 0
    some = dict(list(state.items())[10:])
    found = difference(state, some)
    assert len(found.missing) == 10
    assert not found.different
    assert not found.unexpected
    assert len(difference(some, state).unexpected) == 10


def test_ticks_are_not_shorter_than_the_timeout() -> None:
    assert [ticks(seconds) for seconds in (1, 2, 120, 65535)] == [1, 2, 115, 62500]

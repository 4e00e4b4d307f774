# SPDX-License-Identifier: Apache-2.0
"""The other owners of the slots of Maglev's tables, for the second hop of connections without a cookie."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.config import Config, load, loads
from frontage.config.hash_tables import slots
from frontage.config.vips import Server, ServerState
from frontage.state.allocation import Allocation, Installed, allocate
from frontage.state.desired import desired
from frontage.state.owners import MAX_OTHERS, MAX_POOLS, Owners, latest_pools, other_owners, pools_by_vip, slot_sids, table_rooms
from frontage.state.resolved import resolve
from scale import large_config

ROOMY = loads(large_config(24, 1), Path("large.yaml"))
CONFIG = ROOMY.model_copy(update={"vips": tuple(vip.model_copy(update={"max_servers": 1}) for vip in ROOMY.vips)})
"""A configuration whose tables have room for no more servers than there are."""
NAME = CONFIG.vips[0].name


def pool(servers: int, *draining: int) -> tuple[Server, ...]:
    """Return the first servers, of which those with these positions drain."""
    chosen = CONFIG.servers[:servers]
    return tuple(
        server.model_copy(update={"state": ServerState.DRAINING}) if i in draining else server for i, server in enumerate(chosen)
    )


def config(*pools: tuple[Server, ...]) -> Config:
    """Return a configuration with the servers of the first pool, which knows all these pools."""
    return CONFIG.model_copy(update={"servers": pools[0], "pools": pools})


HASHES = range(1024)
"""Hashes of connections: each slot of every table below has some."""


def candidates(of: Config, allocation: Allocation) -> list[list[int]]:
    """Return the SIDs that the switch tries, by hash of the connection."""
    (vip,) = resolve(of, allocation)
    table, mask = slot_sids(vip.hashed, vip.room), slots(len(vip.hashed), vip.room) - 1
    assert mask < len(HASHES)
    return [[*table[h & mask : (h & mask) + 1], *vip.others.get(h & mask, ())] for h in HASHES]


def owners(servers: tuple[Server, ...], room: int = 1) -> list[int]:
    """Return the SID to which a switch with these servers assigns connections, by hash."""
    table = slot_sids(servers, room)
    return [table[h & (len(table) - 1)] for h in HASHES]


def lost(sids: list[int], found: list[list[int]]) -> list[int]:
    """Return the hashes of connections that the switch does not find again."""
    return [h for h in HASHES if sids[h] not in found[h]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pool(8), pool(9)),
        (pool(8), pool(8, 3)),
        (pool(8, 3), pool(8)),
        (pool(8), pool(17)),  # twice as many slots
        (pool(17, *range(9, 17)), pool(9)),  # half as many
        (pool(2), pool(2, 0, 1)),
    ],
    ids=["added", "drained", "active again", "larger table", "smaller table", "all drained"],
)
def test_switch_tries_the_owner_before_a_change(before: tuple[Server, ...], after: tuple[Server, ...]) -> None:
    old = config(before)
    state = desired(old, allocate(old, Installed({})))
    new = config(after)
    allocation = allocate(new, Installed(state))
    assert lost(owners(before), candidates(new, allocation)) == []
    # A restarted controller, or a later audit, finds the same.
    again = allocate(new, Installed(desired(new, allocation)))
    assert again.others == allocation.others


def test_unchanged_servers_have_no_other_owners() -> None:
    old = config(pool(8))
    state = desired(old, allocate(old, Installed({})))
    assert allocate(old, Installed(state)).others == {NAME: {}}


def test_two_rounds_cover_both_tables_on_all_switches() -> None:
    before, after = pool(8), pool(9, 2)
    first = CONFIG.model_copy(update={"servers": pool(9, 2, 8), "pools": (before, after)})
    second = config(after, before)
    for round_config in (first, second):
        allocation = allocate(round_config, Installed({}))  # an empty switch knows the pools only
        found = candidates(round_config, allocation)
        assert lost(owners(before), found) == lost(owners(after), found) == []
        assert [sids[0] for sids in found] == owners(before if round_config is first else after)


def test_two_changes_of_a_slot_are_remembered() -> None:
    steps = [pool(8), pool(8, 0), pool(9, 0), pool(9, 0, 1)]
    current = config(steps[0])
    state = desired(current, allocate(current, Installed({})))
    for step in steps[1:]:
        current = config(step)
        allocation = allocate(current, Installed(state))
        state = desired(current, allocation)
    found = candidates(current, allocation)
    assert lost(owners(steps[0]), found) == []
    assert max(map(len, found)) == 1 + MAX_OTHERS


@pytest.mark.parametrize("count", [4, 8, 16, 23])
def test_added_server_moves_few_slots_also_across_a_power_of_two(count: int) -> None:
    before, after = (owners(pool(servers), 64) for servers in (count, count + 1))
    moved = sum(old != new for old, new in zip(before, after, strict=True))
    assert moved < 2 * len(HASHES) / (count + 1)


def random_changes(seed: int) -> list[tuple[Server, ...]]:
    """Return the servers after each of five changes: two drain and three are added, in random order. There are seven before."""
    choose = random.Random(seed)
    steps, count, draining = [pool(7)], 7, list[int]()
    for action in choose.sample(("add", "add", "add", "drain", "drain"), 5):
        if action == "add":
            count += 1
        else:
            draining.append(choose.choice([i for i in range(count) if i not in draining]))
        steps.append(pool(count, *draining))
    return steps


def lost_after(base: Config, steps: list[tuple[Server, ...]]) -> float:
    """Return the part of the connections from before all changes that the switch does not find after them."""
    before = Owners()
    tables = []
    for servers in steps:
        current = base.model_copy(update={"servers": servers, "pools": (servers,)})
        room = table_rooms(current, pools_by_vip(current))[NAME]
        others = other_owners(current, {NAME: before}, (NAME,))[NAME]
        table = slot_sids(servers, room)
        before = Owners(table, others, len(table))
        tables.append(owners(servers, room))
    mask = before.size - 1
    found = [[before.sids[h & mask], *before.others.get(h & mask, ())] for h in HASHES]
    return len(lost(tables[0], found)) / len(HASHES)


def test_tables_with_room_forget_fewer_connections_in_many_changes() -> None:
    runs = [random_changes(seed) for seed in range(50)]
    roomy, tight = ([lost_after(base, steps) for steps in runs] for base in (ROOMY, CONFIG))
    for name, parts in (("with room", roomy), ("without", tight)):
        print(f"lost after five changes, {name}: mean {statistics.mean(parts):.2%}, worst of {len(parts)} {max(parts):.2%}")
    assert statistics.mean(roomy) < 0.7 * statistics.mean(tight)


def test_restarted_switch_gets_the_latest_pools_of_each_vip() -> None:
    vips = loads(large_config(24, 4), Path("large.yaml"))
    history = [vips.servers]
    for i in range(len(vips.servers)):  # each change is one of one VIP
        states = [ServerState.DRAINING if j <= i else ServerState.ACTIVE for j in range(len(vips.servers))]
        servers = [server.model_copy(update={"state": state}) for server, state in zip(vips.servers, states, strict=True)]
        history.insert(0, tuple(servers))
    pools = latest_pools(history)
    assert set(pools[0]) == set(history[0])
    assert len(pools) == 1 + len(vips.servers) // len(vips.vips) < MAX_POOLS
    for name, found in pools_by_vip(vips.model_copy(update={"pools": pools})).items():
        assert set(found) == {tuple(server for server in pool if server.vip == name) for pool in history}
    # A pool that returns is the latest one again.
    assert set(latest_pools((history[3], *pools))[0]) == set(history[3])


def test_switches_try_the_owners_of_all_zones() -> None:
    fleet = load(EXAMPLE.with_name("fleet.yaml"))
    zones = ("a", "b")
    config = fleet.model_copy(
        update={
            "vips": tuple(vip.model_copy(update={"spill_over": 0.5}) for vip in fleet.vips),
            "servers": tuple(s.model_copy(update={"zone": zones[i % 2]}) for i, s in enumerate(fleet.servers)),
            "devices": tuple(d.model_copy(update={"zone": zone}) for d, zone in zip(fleet.devices, zones, strict=True)),
        }
    )
    switches = [resolve(own, allocate(own, Installed({}))) for own in config.switches]
    for one, other in (switches, switches[::-1]):
        for vip, elsewhere in zip(one, other, strict=True):
            table, theirs = slot_sids(vip.hashed, vip.room), slot_sids(elsewhere.hashed, elsewhere.room)
            assert table != theirs
            assert all(sid in (table[slot], *vip.others.get(slot, ())) for slot, sid in enumerate(theirs))


def test_removed_servers_are_forgotten() -> None:
    old = config(pool(9, 8))
    state = desired(old, allocate(old, Installed({})))
    new = config(pool(8), pool(9))
    gone = CONFIG.servers[8].sid
    allocation = allocate(new, Installed(state))
    assert all(gone not in sids for sids in candidates(new, allocation))


def test_restarted_switch_finds_connections_from_before_a_removal() -> None:
    pools = (pool(8), pool(8, 7), pool(7))
    allocation = allocate(config(*pools[::-1]), Installed({}))  # an empty switch knows the pools only
    found = candidates(config(*pools[::-1]), allocation)
    gone = CONFIG.servers[7].sid
    kept = [[sid if sid != gone else found[h][0] for h, sid in enumerate(owners(servers))] for servers in pools]
    assert [lost(sids, found) for sids in kept] == [[], [], []]
    assert all(gone not in sids for sids in found)


def test_server_with_the_sid_of_a_removed_one_has_none_of_its_connections() -> None:
    successor = pool(1)[0].model_copy(
        update={"sid": CONFIG.servers[7].sid, "name": "successor", "address": CONFIG.servers[9].address}
    )
    new = config((*pool(7), successor), pool(8))
    found = candidates(new, allocate(new, Installed({})))
    assert all(successor.sid not in sids[1:] for sids in found)

# SPDX-License-Identifier: Apache-2.0
"""A supercluster of three regions with three servers each: placement groups that move between regions, and regions that fail."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import EXAMPLE, TEST_TIMEOUT
from frontage_records.errors import EngineError
from frontage_records.jetstream import moves
from frontage_records.jetstream.engine import JetStream
from frontage_records.jetstream.moves import MoveError
from frontage_records.jetstream.placement_groups import PlacementGroup
from frontage_records.record import Consistency
from nats_cluster import Cluster, skip_without_server, supercluster
from records_engines import BOUNDS, Clock, close_all
from records_history import NEVER, History, linearizable, read_by, write_until

SITES = (1, 2, 3)


@dataclass(frozen=True)
class RecordTestbed:
    servers: Cluster
    stores: dict[int, JetStream]
    """A record server at each site."""

    async def create_group(self, guid: str, sites: list[int]) -> PlacementGroup:
        """Create a record at these sites, and return its placement group."""
        await self.stores[1].put(guid, {"v": "0"}, consistency=Consistency.TOTAL)
        await self.stores[1].place(guid, sites)
        return await self.stores[1].groups.at(sites)

    async def wait_until_settled(self, group: PlacementGroup) -> tuple[str, ...]:
        """Wait until the group has all its servers, and return their names."""
        async with asyncio.timeout(TEST_TIMEOUT):
            while True:
                # Without a leader there is no status.
                with contextlib.suppress(EngineError):
                    found = await moves.group_status(self.stores[1].connection, group)
                    if found.settled:
                        return tuple(sorted(found.servers))
                await asyncio.sleep(0.05)

    def names(self, site: int) -> tuple[str, ...]:
        return tuple(node.name for node in self.servers.of(site))


@pytest.fixture
async def testbed(tmp_path: Path) -> AsyncIterator[RecordTestbed]:
    skip_without_server()
    servers = supercluster(tmp_path)
    servers.start_all()
    stores: dict[int, JetStream] = {}
    try:
        await servers.ready()
        for site in SITES:
            stores[site] = await JetStream.open(servers.near(site), site, SITES, bounds=BOUNDS, clock=Clock())
        yield RecordTestbed(servers, stores)
    finally:
        await close_all(stores.values())
        servers.stop()


async def test_group_moves_between_regions_during_writes(testbed: RecordTestbed) -> None:
    group = await testbed.create_group("guid", [1, 2])
    history, done = History(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for site in SITES:
            tasks.create_task(write_until(done, testbed.stores[site], history, site))
        said: list[str] = []
        store = testbed.stores[3]
        moved = await moves.move(store.connection, store.groups, group.name, [3, 1], limit=60, report=said.append)
        done.set()
    assert said, "there is progress to be seen"
    assert await testbed.wait_until_settled(moved) == testbed.names(3)
    for store in testbed.stores.values():
        await read_by(store, history)
        assert await store.sites("guid") == (3, 1)
    assert any(one.end != NEVER for one in history.operations if one.kind == "put")
    assert linearizable(history.operations, start=(1, "0"))


async def test_move_that_times_out_is_rolled_back(testbed: RecordTestbed) -> None:
    group = await testbed.create_group("guid", [1, 2])
    store = testbed.stores[2]
    with pytest.raises(MoveError, match=r"it is at site 1, 2 again"):
        await moves.move(store.connection, store.groups, group.name, [3], limit=0.01)
    assert await testbed.wait_until_settled(group) == testbed.names(1)
    assert await testbed.stores[3].sites("guid") == (1, 2)
    assert (await testbed.stores[2].put("guid", {"v": "1"}, if_version=1)).record.version == 2


async def test_lost_region_gets_no_group_and_others_serve(testbed: RecordTestbed) -> None:
    group = await testbed.create_group("guid", [1, 2])
    for node in testbed.servers.of(3):
        testbed.servers.kill(node)
    store = testbed.stores[1]

    async def refused() -> bool:
        try:
            await moves.move(store.connection, store.groups, group.name, [3, 1], limit=0.01)
        except MoveError:
            # JetStream did not know yet that the servers were gone. The move was rolled back.
            return False
        except EngineError as error:
            return "provide 3 servers with JetStream and ['site:3'] in one cluster" in str(error)
        raise AssertionError("moved to a region without servers")

    async with asyncio.timeout(TEST_TIMEOUT):
        while not await refused():
            await testbed.wait_until_settled(group)
    assert await testbed.wait_until_settled(group) == testbed.names(1)
    assert (await testbed.stores[2].put("guid", {"v": "1"}, if_version=1)).record.version == 2


async def ensure_at(testbed: RecordTestbed, name: str, sites: tuple[int, ...]) -> None:
    """Repeat a rollback that was impossible while the region was down, as its error message asks the operator to do."""
    store = testbed.stores[2]
    async with asyncio.timeout(TEST_TIMEOUT):
        while True:
            try:
                group = await store.groups.get(name)
                if group is not None and (await store.groups.current(group)).sites == sites:
                    return
                await moves.move(store.connection, store.groups, name, sites, limit=60)
            except EngineError:
                await asyncio.sleep(0.25)


@pytest.mark.parametrize("dying", [1, 3])
async def test_region_failure_during_group_move_loses_nothing(testbed: RecordTestbed, dying: int) -> None:
    """All servers of the old or of the new region die. The group ends at one of them, once the region is back at the latest."""
    group = await testbed.create_group("guid", [1, 2])
    history, done, begun = History(), asyncio.Event(), asyncio.Event()
    store = testbed.stores[2]

    def report(_: str) -> None:
        """The first report shows that the move has begun."""
        begun.set()

    async def move() -> tuple[int, ...]:
        try:
            return (await moves.move(store.connection, store.groups, group.name, [3, 1], limit=5, report=report)).sites
        except MoveError:
            return (1, 2)

    async with asyncio.TaskGroup() as tasks:
        for site in SITES:
            tasks.create_task(write_until(done, testbed.stores[site], history, site))
        moving = tasks.create_task(move())
        await begun.wait()
        for node in testbed.servers.of(dying):
            testbed.servers.kill(node)
        sites = await moving
        for node in testbed.servers.of(dying):
            testbed.servers.start(node)
        await ensure_at(testbed, group.name, sites)
        at = await testbed.wait_until_settled(PlacementGroup(group.name, sites))
        done.set()
    assert at == testbed.names(sites[0])
    for one in testbed.stores.values():
        await read_by(one, history)
    assert linearizable(history.operations, start=(1, "0"))


async def test_unknown_groups_and_sites_are_reported(testbed: RecordTestbed) -> None:
    group = await testbed.create_group("guid", [1])
    store = testbed.stores[1]
    with pytest.raises(EngineError, match="no such placement group: c99"):
        await moves.move(store.connection, store.groups, "c99", [1])
    with pytest.raises(Exception, match="unknown site 9"):
        await moves.move(store.connection, store.groups, group.name, [9])
    assert await testbed.wait_until_settled(group) == testbed.names(1)


async def test_groups_and_move_commands(testbed: RecordTestbed, tmp_path: Path) -> None:
    """The configuration has sites 1 and 2."""
    group = await testbed.create_group("guid", [1])
    config = tmp_path / "frontage.yaml"
    example = EXAMPLE.with_name("artemis.yaml").read_text(encoding="utf-8")
    build = EXAMPLE.resolve().parents[2]
    example = example.replace("../../", f"{build}/")
    config.write_text(f"{example}\nrecords:\n  store: {','.join(testbed.servers.urls)}\n")

    async def run(*words: str, interrupt: bool = False) -> tuple[int | None, str]:
        command = [sys.executable, "-m", "frontage", "records", *words, "-c", str(config)]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env={**os.environ, "COLUMNS": "200"}
        )
        assert process.stdout is not None
        said = b""
        if interrupt:
            # The first output shows that the move has begun.
            said = await process.stdout.readline()
            process.send_signal(signal.SIGINT)
        said += await process.stdout.read()
        return await process.wait(), said.decode()

    status, said = await run("move", group.name, "2", "1")
    assert (status, said.splitlines()[-1]) == (0, f"{group.name} is at site 2, 1")
    status, said = await run("groups")
    assert status == 0
    assert group.name in said
    assert "settled" in said
    moved = PlacementGroup(group.name, (2, 1))
    status, said = await run("move", group.name, "1", interrupt=True)
    assert status == 1
    assert "rolling back to site 2, 1" in said
    assert await testbed.wait_until_settled(moved) == testbed.names(2)
    assert await run("move", group.name, "7") == (1, "error: unknown site 7: use one of: 1, 2\n")
    assert (await testbed.stores[3].get("guid")).version == 1


async def test_records_move_while_a_mirror_server_is_down(testbed: RecordTestbed) -> None:
    await testbed.create_group("guid", [1, 2])
    await testbed.create_group("other", [3, 1])
    mirror = await testbed.stores[1].connection.info("records-c1-at-2")
    testbed.servers.kill(testbed.servers.named(mirror["cluster"]["leader"]))
    await testbed.stores[3].place("guid", [3, 1])
    assert await testbed.stores[1].sites("guid") == (3, 1)
    assert len([one for one in await testbed.stores[1].groups.every() if one.name.startswith("c")]) == 2

"""A supercluster of three regions with three servers each: classes that move between regions, and regions that are gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage_records.errors import EngineError
from frontage_records.jetstream import moves
from frontage_records.jetstream.engine import JetStream
from frontage_records.jetstream.moves import MoveError
from frontage_records.jetstream.placement_groups import PlacementGroup
from frontage_records.record import Consistency
from nats_cluster import Cluster, skip_without_server, supercluster
from records_engines import BOUNDS, Clock
from records_history import NEVER, History, linearizable, read_by, write_until

SITES = (1, 2, 3)


@dataclass(frozen=True)
class World:
    servers: Cluster
    stores: dict[int, JetStream]
    """A record server at each site."""

    async def made(self, guid: str, sites: list[int]) -> PlacementGroup:
        """The class of a new record at these sites."""
        await self.stores[1].put(guid, {"v": "0"}, consistency=Consistency.TOTAL)
        await self.stores[1].place(guid, sites)
        return await self.stores[1].groups.at(sites)

    async def settled(self, one: PlacementGroup) -> tuple[str, ...]:
        """The names of its servers, once they are all where they shall be."""
        async with asyncio.timeout(60):
            while True:
                found = await moves.group_status(self.stores[1].connection, one)
                if found.settled:
                    return tuple(sorted(found.servers))
                await asyncio.sleep(0.05)

    def names(self, site: int) -> tuple[str, ...]:
        return tuple(node.name for node in self.servers.of(site))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    skip_without_server()
    servers = supercluster(tmp_path)
    servers.start_all()
    stores: dict[int, JetStream] = {}
    try:
        await servers.ready()
        for site in SITES:
            stores[site] = await JetStream.open(servers.near(site), site, SITES, bounds=BOUNDS, clock=Clock())
        yield World(servers, stores)
        for store in stores.values():
            await store.close()
    finally:
        servers.stop()


async def test_a_class_moves_between_regions_while_all_write(world: World) -> None:
    group = await world.made("guid", [1, 2])
    history, done = History(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for site in SITES:
            tasks.create_task(write_until(done, world.stores[site], history, site))
        said: list[str] = []
        store = world.stores[3]
        moved = await moves.move(store.connection, store.groups, group.name, [3, 1], limit=60, report=said.append)
        done.set()
    assert said, "there is progress to be seen"
    assert await world.settled(moved) == world.names(3)
    for store in world.stores.values():
        await read_by(store, history)
        assert await store.sites("guid") == (3, 1)
    assert any(one.end != NEVER for one in history.operations if one.kind == "put")
    assert linearizable(history.operations, start=(1, "0"))


async def test_a_move_that_takes_too_long_is_taken_back(world: World) -> None:
    group = await world.made("guid", [1, 2])
    store = world.stores[2]
    with pytest.raises(MoveError, match=r"it is at site 1, 2 again"):
        await moves.move(store.connection, store.groups, group.name, [3], limit=0.01)
    assert await world.settled(group) == world.names(1)
    assert await world.stores[3].sites("guid") == (1, 2)
    assert (await world.stores[2].put("guid", {"v": "1"}, if_version=1)).record.version == 2


async def test_a_region_that_is_gone_gets_no_class_and_the_others_serve(world: World) -> None:
    group = await world.made("guid", [1, 2])
    for node in world.servers.of(3):
        world.servers.kill(node)
    store = world.stores[1]

    async def refused() -> bool:
        try:
            await moves.move(store.connection, store.groups, group.name, [3, 1], limit=0.01)
        except MoveError:
            # Its servers were not yet known to be gone; taken back.
            return False
        except EngineError as error:
            return "it needs 3 servers with JetStream and ['site:3'] in one cluster" in str(error)
        raise AssertionError("moved to nobody")

    async with asyncio.timeout(60):
        while not await refused():
            await world.settled(group)
    assert await world.settled(group) == world.names(1)
    assert (await world.stores[2].put("guid", {"v": "1"}, if_version=1)).record.version == 2


@pytest.mark.parametrize("dying", [1, 3])
async def test_a_region_that_dies_while_a_class_moves_loses_nothing(world: World, dying: int) -> None:
    """The old one or the new one, all its servers at once: the class ends there or here, when the region is back at the latest."""
    group = await world.made("guid", [1, 2])
    history, done, begun = History(), asyncio.Event(), asyncio.Event()
    store = world.stores[2]

    def report(_: str) -> None:
        """Its first words are those of a move that has begun."""
        begun.set()

    async def move() -> tuple[int, ...]:
        try:
            return (await moves.move(store.connection, store.groups, group.name, [3, 1], limit=5, report=report)).sites
        except MoveError:
            return (1, 2)

    async with asyncio.TaskGroup() as tasks:
        for site in SITES:
            tasks.create_task(write_until(done, world.stores[site], history, site))
        moving = tasks.create_task(move())
        await begun.wait()
        for node in world.servers.of(dying):
            world.servers.kill(node)
        sites = await moving
        for node in world.servers.of(dying):
            world.servers.start(node)
        # Also where it was on its way back.
        at = await world.settled(PlacementGroup(group.name, sites))
        done.set()
    assert at == world.names(sites[0])
    for one in world.stores.values():
        await read_by(one, history)
    assert linearizable(history.operations, start=(1, "0"))


async def test_unknown_classes_and_sites_are_told(world: World) -> None:
    group = await world.made("guid", [1])
    store = world.stores[1]
    with pytest.raises(EngineError, match="there is no class c99"):
        await moves.move(store.connection, store.groups, "c99", [1])
    with pytest.raises(Exception, match="there is no site 9"):
        await moves.move(store.connection, store.groups, group.name, [9])
    assert await world.settled(group) == world.names(1)


async def test_the_command(world: World, tmp_path: Path) -> None:
    """It knows sites 1 and 2."""
    group = await world.made("guid", [1])
    config = tmp_path / "frontage.yaml"
    example = EXAMPLE.with_name("artemis.yaml").read_text(encoding="utf-8")
    build = EXAMPLE.resolve().parents[2]
    example = example.replace("../../", f"{build}/")
    config.write_text(f"{example}\nrecords:\n  store: {','.join(world.servers.urls)}\n")

    async def run(*words: str, interrupt: bool = False) -> tuple[int | None, str]:
        command = [sys.executable, "-m", "frontage", "records", *words, "-c", str(config)]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env={**os.environ, "COLUMNS": "200"}
        )
        assert process.stdout is not None
        said = b""
        if interrupt:
            # Its first words are those of a move that has begun.
            said = await process.stdout.readline()
            process.send_signal(signal.SIGINT)
        said += await process.stdout.read()
        return await process.wait(), said.decode()

    status, said = await run("move", group.name, "2", "1")
    assert (status, said.splitlines()[-1]) == (0, f"{group.name} is at site 2, 1")
    status, said = await run("classes")
    assert status == 0
    assert group.name in said
    assert "settled" in said
    moved = PlacementGroup(group.name, (2, 1))
    status, said = await run("move", group.name, "1", interrupt=True)
    assert status == 1
    assert "taking it back to site 2, 1" in said
    assert await world.settled(moved) == world.names(2)
    assert await run("move", group.name, "7") == (1, "error: there is no site 7; known are: 1, 2\n")
    assert (await world.stores[3].get("guid")).version == 1


async def test_records_move_while_a_server_with_a_mirror_is_down(world: World) -> None:
    await world.made("guid", [1, 2])
    await world.made("other", [3, 1])
    mirror = await world.stores[1].connection.info("records-c1-at-2")
    world.servers.kill(world.servers.named(mirror["cluster"]["leader"]))
    await world.stores[3].place("guid", [3, 1])
    assert await world.stores[1].sites("guid") == (3, 1)
    assert len([one for one in await world.stores[1].groups.every() if one.name.startswith("c")]) == 2

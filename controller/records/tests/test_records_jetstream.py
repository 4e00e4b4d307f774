"""The engine of many sites: mirrors, moves, servers that are killed, and JetStream's own weakness that `chain` makes up for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import nats.errors
import pytest

from conftest import EXAMPLE
from frontage.config import loads
from frontage_records.client import RecordClient
from frontage_records.errors import EngineError, NotFoundError, RecordError, SiteError, VersionError
from frontage_records.jetstream import log
from frontage_records.jetstream.connection import CONNECT_TIMEOUT, Connection, Message, OvertakenError
from frontage_records.jetstream.engine import JetStream
from frontage_records.jetstream.entry import Entry, decode
from frontage_records.jetstream.placement_groups import PlacementGroup
from frontage_records.jetstream.single_flight import SingleFlight
from frontage_records.jetstream.write_cache import Location, WriteCache
from frontage_records.record import Consistency, Record
from frontage_records.ring import Ring, partition
from frontage_records.server import Server
from nats_cluster import Cluster, skip_without_server
from records_engines import BOUNDS, NOW, Clock, cluster
from records_history import NEVER, History, linearizable, read_by, totally_written, write_until
from test_records import worker

__all__ = ["cluster"]

SITES = (1, 2, 3)


async def open_at(cluster: Cluster, site: int, *, replicas: int = 1, sites: tuple[int, ...] = SITES) -> JetStream:
    return await JetStream.open(cluster.urls, site, sites, replicas=replicas, bounds=BOUNDS, clock=Clock())


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[dict[int, JetStream]]:
    """A server at each of three sites; records are at all three when they are new."""
    await cluster.ready()
    servers = {site: await open_at(cluster, site) for site in SITES}
    yield servers
    for server in servers.values():
        await server.close()
    await cluster.clear()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


# Sites


async def test_new_records_are_with_their_controllers(world: dict[int, JetStream]) -> None:
    await world[2].put("films.example", {"n": 1})
    assert await world[3].sites("films.example") == Ring(SITES, 3).controllers(partition("films.example"))


@pytest.mark.parametrize("consistency", list(Consistency))
async def test_every_site_gets_every_write(world: dict[int, JetStream], consistency: Consistency) -> None:
    for n, server in enumerate(world.values()):
        await server.put("guid", {"n": n}, consistency=consistency, stamp=NOW + n)
        for other in world.values():

            async def seen(other: JetStream = other, n: int = n) -> bool:
                try:
                    found = await other.get("guid")
                except NotFoundError:
                    return False
                return found.value == {"n": n}

            if consistency is Consistency.TOTAL:
                assert await seen()
            await until(seen)


async def test_mirrors_are_read_where_that_is_enough(world: dict[int, JetStream]) -> None:
    home = Ring(SITES, 3).controllers(partition("guid"))[0]
    away = next(site for site in SITES if site != home)
    await world[home].put("guid", {"n": 1}, consistency=Consistency.TOTAL_WRITES)
    group = await world[away].groups.partition("guid", make=False)
    assert group is not None
    mirror = log.LogReader(world[away].connection, group.mirror(away), group.subject("guid"), nearby=True)

    async def arrived() -> bool:
        return (await log.find_tail(mirror, "guid")).sequence > 0

    await until(arrived)
    await world[away].connection.context.delete_stream(group.stream)
    assert (await world[away].get("guid")).value == {"n": 1}, "the origin is gone, the mirror answers"
    with pytest.raises(RecordError):
        await world[away].put("guid", {"n": 2})


async def test_an_unknown_site_is_refused_and_changes_nothing(world: dict[int, JetStream]) -> None:
    await world[1].put("guid", {})
    before = await world[1].sites("guid")
    with pytest.raises(SiteError, match="there is no site 9; known are: 1, 2, 3"):
        await world[1].place("guid", [1, 9])
    assert await world[1].sites("guid") == before


async def test_a_site_with_too_few_servers_is_told(cluster: Cluster) -> None:
    await cluster.ready()
    server = await open_at(cluster, 1, replicas=3, sites=(1, 2))
    guid = next(f"guid-{i}" for i in range(1000) if Ring((1, 2), 3).controllers(partition(f"guid-{i}"))[0] == 1)
    try:
        await server.put(guid, {})
        with pytest.raises(EngineError, match="it needs 3 servers"):
            await server.place(guid, [2])
        assert (await server.get(guid)).value == {}
    finally:
        await server.close()
        await cluster.clear()


# Moves


@pytest.mark.parametrize("consistency", list(Consistency))
async def test_a_move_takes_the_record_along(world: dict[int, JetStream], consistency: Consistency) -> None:
    before = (await world[1].put("guid", {"n": 1}, consistency=consistency)).record
    for sites in ([3], [2, 1], [3], [1, 2, 3]):
        await world[1].place("guid", sites)
        for server in world.values():
            assert await server.sites("guid") == tuple(sites)
            assert await server.get("guid") == before
    written = await world[3].put("guid", {"n": 2})
    assert written.record.version == before.version + 1


async def test_moved_records_of_like_placement_share_a_stream(world: dict[int, JetStream]) -> None:
    for i in range(10):
        await world[1].put(f"guid-{i}", {})
        await world[1 + i % 3].place(f"guid-{i}", [3, 1])
    listed = await world[1].connection.context.streams_info()
    names = sorted(one.config.name or "" for one in listed if "-c" in (one.config.name or ""))
    assert names == ["records-c1", "records-c1-at-1"]


async def test_who_finds_a_stop_request_starts_the_new_group(world: dict[int, JetStream]) -> None:
    """As if the mover had been killed between its two steps."""
    before = (await world[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)).record
    groups = world[1].groups
    place = await groups.find("guid")
    assert place is not None
    target = await world[1].groups.at([2, 3])
    await groups.append(place, "guid", Entry(1, place.record, target.name))
    assert await world[3].get("guid") == before
    assert (await world[2].put("guid", {"n": 2}, if_version=1)).record.version == 2
    assert await world[1].sites("guid") == (2, 3)
    # And the mover's late second step changes nothing.
    assert (await world[1].get("guid")).value == {"n": 2}


async def test_a_late_write_to_the_old_group_is_refused(world: dict[int, JetStream]) -> None:
    await world[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    late = await world[2].locator.find("guid")
    assert late is not None
    await world[1].place("guid", [3])
    with pytest.raises(OvertakenError):
        await world[2].locator.append(late, "guid", Entry(0, late.record))
    assert (await world[2].put("guid", {"n": 2})).record.version == 2


@pytest.mark.parametrize("consistency", [Consistency.TOTAL_WRITES, Consistency.TOTAL])
@pytest.mark.parametrize("seed", [1, 2])
async def test_histories_while_the_record_moves(world: dict[int, JetStream], consistency: Consistency, seed: int) -> None:
    history, done = History(), asyncio.Event()

    async def work(number: int) -> None:
        rounds = 0
        while not done.is_set():
            await worker(world[1 + number % 3], history, consistency, seed * 10**7 + number * 10**6 + rounds, 3)
            rounds += 1

    async def move() -> None:
        moves = 0
        while moves < 6:
            try:
                await world[1 + moves % 3].place("guid", [[1], [2, 3], [3, 1], [2]][moves % 4])
            except NotFoundError:
                # Deleted, or not put yet.
                continue
            moves += 1
        done.set()

    await asyncio.gather(move(), *(work(number) for number in range(4)))
    assert (linearizable if consistency is Consistency.TOTAL else totally_written)(history.operations), f"seed {seed}"


async def test_a_class_moves_as_a_whole_and_loses_nothing(world: dict[int, JetStream]) -> None:
    await world[1].put("guid", {"n": 0}, consistency=Consistency.TOTAL)
    await world[1].place("guid", [1])
    group = await world[1].groups.at([1])
    history, done = History(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for site in SITES:
            tasks.create_task(write_until(done, world[site], history, site))
        moved = await world[2].groups.move(group.name, [3, 2])
        await until(lambda: _led_by(world[2], moved.stream, "s2"))
        done.set()
    await read_by(world[2], history)
    assert linearizable(history.operations, start=(1, "0"))


async def test_a_record_is_not_moved_to_where_its_class_has_gone(world: dict[int, JetStream]) -> None:
    """By another server, so this one thinks that it is still elsewhere."""
    await world[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    await world[1].place("guid", [1])
    group = await world[2].groups.at([1])
    assert await world[1].sites("guid") == (1,)
    moved = await world[2].groups.move(group.name, [3, 2])
    await until(lambda: _led_by(world[2], moved.stream, "s2"))
    await world[1].place("guid", [3, 2])
    for n, server in enumerate(world.values(), start=2):
        assert (await server.put("guid", {"n": n})).record.version == n
        assert await server.sites("guid") == (3, 2)


async def _led_by(server: JetStream, stream: str, name: str) -> bool:
    try:
        info = await server.connection.streams.stream_info(stream)
    except nats.errors.TimeoutError:
        # Between two leaders nobody answers.
        return False
    return info.cluster is not None and info.cluster.leader == name and not info.cluster.replicas


# What a server knows of its own writes


@pytest.fixture
async def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The subjects of records that a leader or a mirror was asked for."""
    found: list[str] = []
    read = Connection.read

    async def instead(self: Connection, stream: str, subject: str, since: int | None, *, nearby: bool) -> Message | None:
        found.append(subject)
        return await read(self, stream, subject, since, nearby=nearby)

    monkeypatch.setattr(Connection, "read", instead)
    return found


async def test_who_wrote_last_asks_nobody_before_it_writes(world: dict[int, JetStream], asked: list[str]) -> None:
    home = world[Ring(SITES, 3).controllers(partition("guid"))[0]]
    await home.put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    asked.clear()
    assert (await home.put("guid", {"n": 2}, if_version=1)).record.version == 2
    assert (await home.get("guid")).value == {"n": 2}
    with pytest.raises(VersionError):
        await home.put("guid", {"n": 9}, if_version=1)
    assert (await home.delete("guid")).record.version == 3
    assert asked == []


@pytest.mark.parametrize("consistency", list(Consistency))
async def test_what_a_server_knows_of_its_own_writes_is_believed_by_nobody(
    world: dict[int, JetStream], cluster: Cluster, consistency: Consistency
) -> None:
    """Two servers at one site, each of which thinks that it was the last to write."""
    home = Ring(SITES, 3).controllers(partition("guid"))[0]
    one, other = world[home], await open_at(cluster, home)
    ordered = consistency is not Consistency.EVENTUAL
    for n in range(1, 9):
        by = (one, other)[n % 2]
        written = await by.put("guid", {"n": n}, consistency=consistency, stamp=NOW + n, if_version=n - 1 if ordered else None)
        assert written.applied
        assert (await (other, one)[n % 2].get("guid")).value == {"n": n}
    if ordered:
        with pytest.raises(VersionError, match="guid is version 8, not version 7"):
            await one.put("guid", {}, if_version=7)
    else:
        assert (await other.put("guid", {}, stamp=NOW)).record.value == {"n": 8}
    await other.place("guid", [home])
    assert (await one.put("guid", {"n": 9}, stamp=NOW + 9)).record.value == {"n": 9}
    assert (await other.get("guid")).value == {"n": 9}
    await other.close()


def test_heads_take_no_more_room_than_they_may() -> None:
    def place(size: int) -> Location:
        record = Record("guid", Consistency.TOTAL, 1, NOW, b"x" * size)
        return Location(PlacementGroup("p1", (1,)), log.Tail(1, Entry(0, record), 1))

    heads = WriteCache(kept=10_000)
    for name in "abcd":
        heads.put(name, place(1000))
    assert [name for name in "abcd" if heads.get(name)] == list("abcd")
    heads.put("a", place(1000))
    heads.put("e", place(3000))
    assert [name for name in "abcde" if heads.get(name)] == ["a", "d", "e"]
    heads.put("f", place(20_000))
    assert len(heads) == 0


# Concurrency that JetStream does not see


async def test_of_messages_that_follow_the_same_the_first_counts(world: dict[int, JetStream]) -> None:
    """Written past JetStream's own check, as its servers let some through."""
    await world[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    place = await world[1].locator.find("guid")
    assert place is not None
    first, group = place.tip.sequence, place.group
    for n in (2, 3, 4):
        record = Record("guid", Consistency.TOTAL, 2, NOW, json.dumps({"n": n}).encode())
        await world[1].connection.context.publish(group.subject("guid"), Entry(0, record, after=first).encode())
    for server in world.values():
        found = await server.get("guid")
        assert (found.version, found.value) == (2, {"n": 2})
    with pytest.raises(VersionError):
        await world[2].put("guid", {"n": 9}, if_version=1)
    assert (await world[2].put("guid", {"n": 5}, if_version=2)).record.version == 3
    assert (await world[3].get("guid")).value == {"n": 5}


async def test_what_is_none_of_ours_is_told(world: dict[int, JetStream]) -> None:
    await world[1].put("guid", {})
    place = await world[1].locator.find("guid")
    assert place is not None
    await world[1].connection.context.publish(place.group.subject("guid"), b"hello")
    with pytest.raises(EngineError, match="none of ours"):
        await world[1].get("guid")
    await world[1].put("other", {"n": 1})


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"epoch":"x","after":0}', b'{"epoch":0,"after":0,"version":1}', b"\xff"])
def test_entries_that_are_none(data: bytes) -> None:
    with pytest.raises(EngineError):
        decode("guid", data)


@pytest.mark.parametrize("document", [None, b"{}", b'{"a":"\\n"}'])
def test_entries(document: bytes | None) -> None:
    record = Record("guid", Consistency.TOTAL, 3, NOW, document)
    for entry in (Entry(1, record, "c4", 17), Entry(2, None, "p1", 3), Entry(0, record)):
        assert decode("guid", entry.encode()) == entry


async def test_who_asks_during_an_operation_gets_the_next() -> None:
    together: SingleFlight[int] = SingleFlight()
    begun, go_on, runs = asyncio.Event(), asyncio.Event(), 0

    async def operation() -> int:
        nonlocal runs
        runs += 1
        begun.set()
        await go_on.wait()
        return runs

    first = asyncio.create_task(together.do("key", operation))
    await begun.wait()
    later = [asyncio.create_task(together.do("key", operation)) for _ in range(5)]
    await asyncio.sleep(0)
    go_on.set()
    assert await first == 1
    assert set(await asyncio.gather(*later)) == {2}
    assert await together.do("key", operation) == 3


# Failures


async def test_an_engine_that_is_down_at_the_start_is_told() -> None:
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:1: cannot be reached"):
        await JetStream.open(["nats://127.0.0.1:1"], 1, SITES)
    assert CONNECT_TIMEOUT < 60


@pytest.mark.parametrize("serves", [True, False])
async def test_the_server_with_jetstream(cluster: Cluster, serves: bool) -> None:
    await cluster.ready()
    text = f"{EXAMPLE.read_text(encoding='utf-8')}\nsite: {{ id: 1, vtep: 203.0.113.9 }}\n"
    text += f"records:\n  listen: 127.0.0.1:0\n  store: {','.join(cluster.urls) if serves else 'nats://127.0.0.1:1'}\n"
    config = loads(text, EXAMPLE)
    assert config.records is not None
    if not serves:
        with pytest.raises(EngineError, match="cannot be reached"):
            await Server.start(config, config.records)
        return
    server = await Server.start(config, config.records)
    try:
        async with RecordClient("http://{}:{}".format(*server.address)) as client:
            written = await client.put("guid", {"n": 1}, consistency=Consistency.TOTAL)
            changes = client.subscribe("guid")
            assert await anext(changes) == await client.get("guid") == written.record
            await client.put("guid", {"n": 2}, if_version=1)
            assert (await anext(changes)).value == {"n": 2}
            await changes.aclose()
            assert await client.sites("guid") == (1,)
            with pytest.raises(SiteError):
                await client.place("guid", [7])
    finally:
        await server.close()
        await cluster.clear()


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A cluster to be killed: three servers at one site."""
    skip_without_server()
    cluster = Cluster(tmp_path, [[1], [1], [1]])
    cluster.start_all()
    try:
        await cluster.ready()
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("fault", ["killed", "stopped"])
async def test_leaders_that_fail_lose_nothing(three: Cluster, fault: str) -> None:
    """One that stands still goes on where it was: it is a leader that does not know yet that there is another."""
    servers = [await open_at(three, 1, replicas=3, sites=(1,)) for _ in range(2)]
    histories = {f"guid-{i}": History() for i in range(4)}
    done = asyncio.Event()
    acknowledged: dict[str, asyncio.Semaphore] = {}

    async def some() -> None:
        """Of each record, which takes a new leader where there is none."""
        acknowledged.update({guid: asyncio.Semaphore(0) for guid in histories})
        for one in acknowledged.values():
            for _ in range(10):
                await one.acquire()

    async with asyncio.TaskGroup() as tasks:
        for guid, history in histories.items():

            def wrote(guid: str = guid) -> None:
                acknowledged[guid].release()

            acknowledged[guid] = asyncio.Semaphore(0)
            for by, server in enumerate(servers):
                tasks.create_task(write_until(done, server, history, by, guid, wrote))
        for node in three.nodes:
            await some()
            (three.kill if fault == "killed" else three.freeze)(node)
            await some()
            (three.start if fault == "killed" else three.thaw)(node)
            await some()
        done.set()
    for guid, history in histories.items():
        await read_by(servers[0], history, guid)
        assert any(one.end != NEVER for one in history.operations[:-1])
        assert linearizable(history.operations), guid
    for server in servers:
        await server.close()


async def test_without_most_of_a_group_nothing_is_acknowledged_and_nothing_lost(three: Cluster) -> None:
    server = await open_at(three, 1, replicas=3, sites=(1,))
    before = (await server.put("guid", {"n": 1}, consistency=Consistency.TOTAL)).record
    most = three.nodes[:2]
    for node in most:
        three.kill(node)
    with pytest.raises(RecordError):
        await server.put("guid", {"n": 2})
    for node in most:
        three.start(node)

    async def again() -> bool:
        try:
            found = await server.get("guid")
        except EngineError:
            return False
        assert found == before or (found.version, found.value) == (2, {"n": 2})
        return True

    await until(again)
    await server.close()

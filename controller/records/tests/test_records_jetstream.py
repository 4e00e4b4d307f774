# SPDX-License-Identifier: Apache-2.0
"""The JetStream engine: mirrors, moves, failing servers, and concurrent messages that JetStream accepts wrongly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import nats.errors
import pytest

from conftest import EXAMPLE, TEST_TIMEOUT
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
from frontage_records.record import REPLACED, Consistency, Record
from frontage_records.ring import Ring, partition
from frontage_records.server import Server
from nats_cluster import Cluster
from records_engines import BOUNDS, NOW, Clock, cluster
from records_history import NEVER, History, eventually, linearizable, read_by, totally_written, unexplained, write_until
from test_records import worker

__all__ = ["cluster"]

SITES = (1, 2, 3)


async def open_at(cluster: Cluster, site: int, *, replicas: int = 1, sites: tuple[int, ...] = SITES) -> JetStream:
    return await JetStream.open(cluster.urls, site, sites, replicas=replicas, bounds=BOUNDS, clock=Clock())


@pytest.fixture
async def testbed(cluster: Cluster) -> AsyncIterator[dict[int, JetStream]]:
    """A server at each of three sites; new records are at all three."""
    await cluster.ready()
    servers = {site: await open_at(cluster, site) for site in SITES}
    yield servers
    for server in servers.values():
        await server.close()
    await cluster.clear()


async def wait_until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(TEST_TIMEOUT):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


# Sites


async def test_new_records_are_at_their_controllers(testbed: dict[int, JetStream]) -> None:
    await testbed[2].put("films.example", {"n": 1})
    assert await testbed[3].sites("films.example") == Ring(SITES, 3).controllers(partition("films.example"))


@pytest.mark.parametrize("consistency", list(REPLACED))
async def test_every_site_gets_every_write(testbed: dict[int, JetStream], consistency: Consistency) -> None:
    for n, server in enumerate(testbed.values()):
        await server.put("guid", {"n": n}, consistency=consistency, stamp=NOW + n)
        for other in testbed.values():

            async def seen(other: JetStream = other, n: int = n) -> bool:
                try:
                    found = await other.get("guid")
                except NotFoundError:
                    return False
                return found.value == {"n": n}

            if consistency is Consistency.TOTAL:
                assert await seen()
            await wait_until(seen)


async def test_total_writes_records_are_read_from_mirrors(testbed: dict[int, JetStream]) -> None:
    home = Ring(SITES, 3).controllers(partition("guid"))[0]
    away = next(site for site in SITES if site != home)
    await testbed[home].put("guid", {"n": 1}, consistency=Consistency.TOTAL_WRITES)
    group = await testbed[away].groups.partition("guid", make=False)
    assert group is not None
    mirror = log.LogReader(testbed[away].connection, group.mirror(away), group.subject("guid"), nearby=True)

    async def arrived() -> bool:
        return (await log.find_tail(mirror, "guid")).sequence > 0

    await wait_until(arrived)
    await testbed[away].connection.context.delete_stream(group.stream)
    assert (await testbed[away].get("guid")).value == {"n": 1}, "the mirror must answer after the loss of the origin"
    with pytest.raises(RecordError):
        await testbed[away].put("guid", {"n": 2})


async def test_unknown_site_is_rejected_and_changes_nothing(testbed: dict[int, JetStream]) -> None:
    await eventually(lambda: testbed[1].put("guid", {}))
    before = await eventually(lambda: testbed[1].sites("guid"))
    with pytest.raises(SiteError, match="unknown site 9: use one of: 1, 2, 3"):
        await eventually(lambda: testbed[1].place("guid", [1, 9]))
    assert await eventually(lambda: testbed[1].sites("guid")) == before


async def test_site_with_too_few_servers_is_reported(cluster: Cluster) -> None:
    await cluster.ready()
    server = await open_at(cluster, 1, replicas=3, sites=(1, 2))
    guid = next(f"guid-{i}" for i in range(1000) if Ring((1, 2), 3).controllers(partition(f"guid-{i}"))[0] == 1)
    try:
        await server.put(guid, {})
        with pytest.raises(EngineError, match="provide 3 servers"):
            await server.place(guid, [2])
        assert (await server.get(guid)).value == {}
    finally:
        await server.close()
        await cluster.clear()


# Moves


@pytest.mark.parametrize("consistency", list(REPLACED))
async def test_move_keeps_the_record(testbed: dict[int, JetStream], consistency: Consistency) -> None:
    before = (await testbed[1].put("guid", {"n": 1}, consistency=consistency)).record
    for sites in ([3], [2, 1], [3], [1, 2, 3]):
        await testbed[1].place("guid", sites)
        for server in testbed.values():
            assert await server.sites("guid") == tuple(sites)
            assert await server.get("guid") == before
    written = await testbed[3].put("guid", {"n": 2})
    assert written.record.version == before.version + 1


async def test_moved_records_with_same_sites_share_a_stream(testbed: dict[int, JetStream]) -> None:
    for i in range(10):
        await testbed[1].put(f"guid-{i}", {})
        await testbed[1 + i % 3].place(f"guid-{i}", [3, 1])
    listed = await testbed[1].connection.context.streams_info()
    names = sorted(one.config.name or "" for one in listed if "-c" in (one.config.name or ""))
    assert names == ["records-c1", "records-c1-at-1"]


async def test_stop_request_is_completed_by_its_finder(testbed: dict[int, JetStream]) -> None:
    """The mover dies between its two steps."""
    before = (await testbed[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)).record
    locator = testbed[1].locator
    place = await locator.find("guid")
    assert place is not None
    target = await testbed[1].groups.at([2, 3])
    await locator.append(place, "guid", Entry(1, place.record, target.name))
    assert await testbed[3].get("guid") == before
    assert (await testbed[2].put("guid", {"n": 2}, if_version=1)).record.version == 2
    assert await testbed[1].sites("guid") == (2, 3)
    # The late second step of the mover changes nothing.
    assert (await testbed[1].get("guid")).value == {"n": 2}


async def test_late_write_to_old_group_is_refused(testbed: dict[int, JetStream]) -> None:
    await testbed[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    late = await testbed[2].locator.find("guid")
    assert late is not None
    await testbed[1].place("guid", [3])
    with pytest.raises(OvertakenError):
        await testbed[2].locator.append(late, "guid", Entry(0, late.record))
    assert (await testbed[2].put("guid", {"n": 2})).record.version == 2


@pytest.mark.parametrize("consistency", [Consistency.TOTAL_WRITES, Consistency.TOTAL])
@pytest.mark.parametrize("seed", [1, 2])
async def test_histories_during_moves_are_linearizable(testbed: dict[int, JetStream], consistency: Consistency, seed: int) -> None:
    history, done = History(), asyncio.Event()

    async def work(number: int) -> None:
        rounds = 0
        while not done.is_set():
            await worker(testbed[1 + number % 3], history, consistency, seed * 10**7 + number * 10**6 + rounds, 3)
            rounds += 1

    async def move() -> None:
        moves = 0
        while moves < 6:
            try:
                await testbed[1 + moves % 3].place("guid", [[1], [2, 3], [3, 1], [2]][moves % 4])
            except NotFoundError:
                # Deleted, or not written yet.
                continue
            moves += 1
        done.set()

    await asyncio.gather(move(), *(work(number) for number in range(4)))
    assert (linearizable if consistency is Consistency.TOTAL else totally_written)(history.operations), f"seed {seed}"


async def test_group_move_loses_nothing(testbed: dict[int, JetStream]) -> None:
    await testbed[1].put("guid", {"n": 0}, consistency=Consistency.TOTAL)
    await testbed[1].place("guid", [1])
    group = await testbed[1].groups.at([1])
    history, done = History(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for site in SITES:
            tasks.create_task(write_until(done, testbed[site], history, site))
        moved = await testbed[2].groups.move(group.name, [3, 2])
        await wait_until(lambda: _is_led_at(testbed[2], moved.stream, "s2"))
        done.set()
    await read_by(testbed[2], history)
    assert linearizable(history.operations, start=(1, "0"))


async def test_record_whose_group_has_moved_is_not_moved_again(testbed: dict[int, JetStream]) -> None:
    """Another server has moved the group, and this one has cached its old sites."""
    await testbed[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    await testbed[1].place("guid", [1])
    group = await testbed[2].groups.at([1])
    assert await testbed[1].sites("guid") == (1,)
    moved = await testbed[2].groups.move(group.name, [3, 2])
    await wait_until(lambda: _is_led_at(testbed[2], moved.stream, "s2"))
    await testbed[1].place("guid", [3, 2])
    for n, server in enumerate(testbed.values(), start=2):
        assert (await server.put("guid", {"n": n})).record.version == n
        assert await server.sites("guid") == (3, 2)


async def _is_led_at(server: JetStream, stream: str, name: str) -> bool:
    try:
        info = await server.connection.context.stream_info(stream)
    except nats.errors.TimeoutError:
        # There is no answer between two leaders.
        return False
    return info.cluster is not None and info.cluster.leader == name and not info.cluster.replicas


# Write cache


@pytest.fixture
async def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the subjects of records that are read from leaders or mirrors."""
    found: list[str] = []
    read = Connection.read

    async def instead(self: Connection, stream: str, subject: str, since: int | None, *, nearby: bool) -> Message | None:
        found.append(subject)
        return await read(self, stream, subject, since, nearby=nearby)

    monkeypatch.setattr(Connection, "read", instead)
    return found


async def test_last_writer_writes_without_reading(testbed: dict[int, JetStream], requests: list[str]) -> None:
    home = testbed[Ring(SITES, 3).controllers(partition("guid"))[0]]
    await home.put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    requests.clear()
    assert (await home.put("guid", {"n": 2}, if_version=1)).record.version == 2
    assert (await home.get("guid")).value == {"n": 2}
    with pytest.raises(VersionError):
        await home.put("guid", {"n": 9}, if_version=1)
    assert (await home.delete("guid")).record.version == 3
    assert requests == []


@pytest.mark.parametrize("consistency", list(REPLACED))
async def test_stale_write_cache_is_never_returned(
    testbed: dict[int, JetStream], cluster: Cluster, consistency: Consistency
) -> None:
    """Two servers at one site, each with a cached tail of its own last write."""
    home = Ring(SITES, 3).controllers(partition("guid"))[0]
    one, other = testbed[home], await open_at(cluster, home)
    ordered = consistency is not Consistency.EVENTUAL
    for n in range(1, 9):
        by = (one, other)[n % 2]
        written = await by.put("guid", {"n": n}, consistency=consistency, stamp=NOW + n, if_version=n - 1 if ordered else None)
        assert written.applied
        assert (await (other, one)[n % 2].get("guid")).value == {"n": n}
    if ordered:
        with pytest.raises(VersionError, match="guid: the record has version 8, expected version 7"):
            await one.put("guid", {}, if_version=7)
    else:
        assert (await other.put("guid", {}, stamp=NOW)).record.value == {"n": 8}
    await other.place("guid", [home])
    assert (await one.put("guid", {"n": 9}, stamp=NOW + 9)).record.value == {"n": 9}
    assert (await other.get("guid")).value == {"n": 9}
    await other.close()


def test_write_cache_is_bounded() -> None:
    def place(size: int) -> Location:
        record = Record("guid", Consistency.TOTAL, 1, NOW, b"x" * size)
        return Location(PlacementGroup("p1", (1,)), log.Tail(1, Entry(0, record), 1))

    heads = WriteCache(max_bytes=10_000)
    for name in "abcd":
        heads.put(name, place(1000))
    assert [name for name in "abcd" if heads.get(name)] == list("abcd")
    heads.put("a", place(1000))
    heads.put("e", place(3000))
    assert [name for name in "abcde" if heads.get(name)] == ["a", "d", "e"]
    heads.put("f", place(20_000))
    assert len(heads) == 0


# Concurrency that JetStream does not detect


async def test_first_of_messages_with_same_predecessor_is_valid(testbed: dict[int, JetStream]) -> None:
    """The messages bypass JetStream's check, as some servers admit them."""
    await testbed[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    place = await testbed[1].locator.find("guid")
    assert place is not None
    first, group = place.tail.sequence, place.group
    for n in (2, 3, 4):
        record = Record("guid", Consistency.TOTAL, 2, NOW, json.dumps({"n": n}).encode())
        await testbed[1].connection.context.publish(group.subject("guid"), Entry(0, record, after=first).encode())
    for server in testbed.values():
        found = await server.get("guid")
        assert (found.version, found.value) == (2, {"n": 2})
    with pytest.raises(VersionError):
        await testbed[2].put("guid", {"n": 9}, if_version=1)
    assert (await testbed[2].put("guid", {"n": 5}, if_version=2)).record.version == 3
    assert (await testbed[3].get("guid")).value == {"n": 5}


async def test_foreign_message_is_reported(testbed: dict[int, JetStream]) -> None:
    await testbed[1].put("guid", {})
    place = await testbed[1].locator.find("guid")
    assert place is not None
    await testbed[1].connection.context.publish(place.group.subject("guid"), b"hello")
    with pytest.raises(EngineError, match="invalid message"):
        await testbed[1].get("guid")
    await testbed[1].put("other", {"n": 1})


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"epoch":"x","after":0}', b'{"epoch":0,"after":0,"version":1}', b"\xff"])
def test_invalid_entries_are_rejected(data: bytes) -> None:
    with pytest.raises(EngineError):
        decode("guid", data)


@pytest.mark.parametrize("document", [None, b"{}", b'{"a":"\\n"}'])
def test_entries_round_trip(document: bytes | None) -> None:
    record = Record("guid", Consistency.TOTAL, 3, NOW, document)
    for entry in (Entry(1, record, "c4", 17), Entry(2, None, "p1", 3), Entry(0, record)):
        assert decode("guid", entry.encode()) == entry


async def test_single_flight_call_during_operation_gets_the_next() -> None:
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


async def test_unreachable_servers_are_reported_at_start() -> None:
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:1: cannot be reached"):
        await JetStream.open(["nats://127.0.0.1:1"], 1, SITES)
    assert CONNECT_TIMEOUT < 60


@pytest.mark.parametrize("serves", [True, False])
async def test_record_server_with_jetstream(cluster: Cluster, serves: bool) -> None:
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


@pytest.mark.parametrize("fault", ["killed", "stopped"])
async def test_failing_leaders_lose_nothing(three: Cluster, fault: str) -> None:
    """A suspended leader continues where it was, and does not know yet that there is another leader."""
    servers = [await open_at(three, 1, replicas=3, sites=(1,)) for _ in range(2)]
    histories = {f"guid-{i}": History() for i in range(4)}
    done = asyncio.Event()
    acknowledged: dict[str, asyncio.Semaphore] = {}

    async def wait_for_writes() -> None:
        """Wait for ten acknowledged writes of each record, which need a leader."""
        acknowledged.update({guid: asyncio.Semaphore(0) for guid in histories})
        for semaphore in acknowledged.values():
            for _ in range(10):
                await semaphore.acquire()

    async with asyncio.TaskGroup() as tasks:
        for guid, history in histories.items():

            def wrote(guid: str = guid) -> None:
                acknowledged[guid].release()

            acknowledged[guid] = asyncio.Semaphore(0)
            for by, server in enumerate(servers):
                tasks.create_task(write_until(done, server, history, by, guid, wrote))
        for node in three.nodes:
            await wait_for_writes()
            (three.kill if fault == "killed" else three.freeze)(node)
            await wait_for_writes()
            (three.start if fault == "killed" else three.thaw)(node)
            await wait_for_writes()
        done.set()
    for guid, history in histories.items():
        await read_by(servers[0], history, guid)
        assert any(one.end != NEVER for one in history.operations[:-1])
        assert unexplained(history.operations) is None, guid
    for server in servers:
        await server.close()


async def test_new_groups_are_created_while_servers_restart(three: Cluster) -> None:
    """JetStream refuses to place a stream while it does not know yet that a server is back."""
    server = await open_at(three, 1, replicas=3, sites=(1,))
    guids = list({partition(f"guid-{i}"): f"guid-{i}" for i in range(500)}.values())[:15]
    for node, first in zip(three.nodes, (0, 5, 10), strict=True):
        three.kill(node)
        three.start(node)
        for guid in guids[first : first + 5]:
            await server.put(guid, {})
    for guid in guids:
        assert (await server.get(guid)).value == {}
    await server.close()


async def test_minority_acknowledges_nothing_and_loses_nothing(three: Cluster) -> None:
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

    await wait_until(again)
    await server.close()

# SPDX-License-Identifier: Apache-2.0
"""Writes that are repeated because their answer was lost: each takes effect once, and returns its first result."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from nats.aio.msg import Msg

from conftest import EXAMPLE
from frontage_records.errors import NotFoundError, OutcomeUnknownError, VersionError
from frontage_records.jetstream import memory, relay
from frontage_records.jetstream.connection import Connection, NoAnswerError
from frontage_records.jetstream.engine import JetStream
from frontage_records.jetstream.entry import Entry, decode
from frontage_records.jetstream.log import HISTORY
from frontage_records.jetstream.memory import MAX_DONE, MAX_ORIGINS, ForgottenError, Memory
from frontage_records.jetstream.relay import SUBJECT
from frontage_records.record import Consistency, Operation, Record, Write, Written
from frontage_records.ring import Ring, partition
from nats_cluster import Cluster
from records_engines import BOUNDS, NOW, Clock, cluster
from records_history import History, linearizable, porcupines

__all__ = ["cluster"]

SITES = (1, 2, 3)
ATTEMPT = 0.3
"""Seconds that these tests wait for an answer."""


# Memory


def write(number: int, *, oldest: int = 1, after: int = 0, origin: str = "a") -> Write:
    return Write("guid", b"%d" % number, operation=Operation(origin, number, oldest, after))


def record(version: int, document: bytes = b"{}") -> Record:
    return Record("guid", Consistency.TOTAL, version, NOW + version, document)


def filled(number: int) -> Memory:
    """Return the memory after this number of writes, all of which may be repeated."""
    found = Memory()
    for version in range(1, number + 1):
        found = found.with_(write(version), record(version))
    return found


def test_memory_returns_first_result() -> None:
    found = filled(5).result(write(2), record(5))
    assert found == Written(Record("guid", Consistency.TOTAL, 2, NOW + 2, b"2"), applied=True)
    assert filled(5).result(write(6), record(5)) is None
    assert filled(5).result(write(2, origin="b"), record(5)) is None


def test_memory_is_bounded_and_knows_what_it_has_forgotten() -> None:
    found = filled(MAX_DONE + 3)
    assert (len(found.done), found.forgotten) == (MAX_DONE, 3)
    now = record(MAX_DONE + 3)
    with pytest.raises(ForgottenError) as refused:
        found.result(write(3, after=2), now)
    assert refused.value.version == MAX_DONE + 3
    assert found.result(write(999, after=3), now) is None, "all writes after version 3 are remembered"
    assert found.result(write(4, after=2), now) is not None


def test_memory_drops_results_that_their_origin_has_received() -> None:
    found = filled(5).with_(write(6, oldest=5), record(6))
    assert [one.number for one in found.done] == [5, 6]
    assert found.forgotten == 0
    with pytest.raises(ForgottenError):
        # A late attempt of a write that its origin has completed.
        found.result(write(4, after=99), record(6))
    older = found.with_(write(7, oldest=2), record(7))
    assert [one.number for one in older.done] == [5, 6, 7], "messages may overtake each other"
    with pytest.raises(ForgottenError):
        older.result(write(4, after=99), record(7))


def test_number_of_origins_is_bounded() -> None:
    found = Memory()
    for version in range(1, MAX_ORIGINS + 2):
        found = found.with_(write(1, origin=f"o{version}"), record(version))
    assert (len(found.origins), found.forgotten) == (MAX_ORIGINS, 1)


def test_messages_contain_the_memory() -> None:
    found = filled(MAX_DONE + 3)
    entry = Entry(0, record(MAX_DONE + 3), memory=found)
    assert decode("guid", entry.encode()).memory == found
    assert len(entry.encode()) < 64 * MAX_DONE
    assert decode("guid", Entry(0, record(1)).encode()).memory == Memory()


# Servers


class Answers:
    """Decides which answers to relayed operations are lost."""

    def __init__(self) -> None:
        self.lost = 0
        """Number of answers to lose."""
        self.rate = 0.0
        self.random = random.Random(1)
        self.instead: Callable[[], Awaitable[None]] | None = None
        """Called before the first answer is lost, when the operation is done."""

    async def is_lost(self) -> bool:
        if self.lost:
            self.lost -= 1
            instead, self.instead = self.instead, None
            if instead is not None:
                await instead()
            return True
        return self.random.random() < self.rate


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    found, respond = Answers(), Msg.respond

    async def instead(self: Msg, data: bytes) -> None:
        if not (self.subject.startswith(SUBJECT) and await found.is_lost()):
            await respond(self, data)

    monkeypatch.setattr(Msg, "respond", instead)
    monkeypatch.setattr(relay, "ANSWER_TIMEOUT", ATTEMPT)
    return found


@pytest.fixture
async def testbed(cluster: Cluster) -> AsyncIterator[dict[int, JetStream]]:
    """A server at each of three sites."""
    await cluster.ready()
    servers = {site: await JetStream.open(cluster.urls, site, SITES, replicas=1, bounds=BOUNDS, clock=Clock()) for site in SITES}
    yield servers
    for server in servers.values():
        await server.close()
    await cluster.clear()


async def at_site_1(testbed: dict[int, JetStream], consistency: Consistency) -> None:
    """Create a record that site 1 orders, and let all servers know its group."""
    await testbed[1].put("guid", {"n": 1}, consistency=consistency, stamp=NOW)
    await testbed[1].place("guid", [1])
    for server in testbed.values():
        await server.get("guid")


ORDERED = [Consistency.TOTAL, Consistency.TOTAL_WRITES]


@pytest.mark.parametrize("consistency", ORDERED)
async def test_write_with_lost_answers_is_done_once(
    testbed: dict[int, JetStream], answers: Answers, consistency: Consistency
) -> None:
    await at_site_1(testbed, consistency)
    answers.lost = 2
    written = await testbed[3].put("guid", {"n": 2}, stamp=7)
    assert (written.record.version, written.record.stamp, written.record.value) == (2, 7, {"n": 2})
    answers.lost = 1
    assert (await testbed[3].delete("guid")).record.version == 3
    with pytest.raises(NotFoundError):
        await testbed[1].get("guid")
    answers.lost = 1
    assert (await testbed[3].put("guid", {"n": 4}, if_version=0)).record.version == 4


async def test_creation_with_lost_answers_is_done_once(testbed: dict[int, JetStream], answers: Answers) -> None:
    """Each record is at the sites of its partition. The server of site 3 relays the creations at the others."""
    for number in range(9):
        answers.lost = 1
        assert (await testbed[3].put(f"t{number}", {}, consistency=Consistency.TOTAL)).record.version == 1
        answers.lost = 1
        assert (await testbed[3].update(f"c{number}", {"n": 1}, consistency=Consistency.COUNTER)).record.value == {"n": 1}
        answers.lost = 1
        written = await testbed[3].put(f"e{number}", {"n": 1}, stamp=NOW + 1)
        assert (written.applied, written.record.stamp) == (True, NOW + 1)
    for number in range(9):
        assert (await testbed[3].get(f"c{number}")).value == {"n": 1}


@pytest.mark.parametrize("consistency", [*ORDERED, Consistency.EVENTUAL])
async def test_repetition_returns_first_result_after_later_writes(
    testbed: dict[int, JetStream], answers: Answers, consistency: Consistency
) -> None:
    guid = next(name for name in map(str, range(99)) if Ring(SITES, 3).controllers(partition(name))[0] == 1)

    async def later() -> None:
        for number in range(3):
            await testbed[1].put(guid, {"later": number}, stamp=NOW + 10 + number)

    answers.lost, answers.instead = 1, later
    written = await testbed[3].put(guid, {"n": 1}, consistency=consistency, stamp=NOW)
    assert (written.applied, written.record.stamp, written.record.value) == (True, NOW, {"n": 1})
    assert (await testbed[1].get(guid)).value == {"later": 2}


@pytest.mark.parametrize("consistency", ORDERED)
async def test_forgotten_write_has_unknown_outcome(
    testbed: dict[int, JetStream], answers: Answers, monkeypatch: pytest.MonkeyPatch, consistency: Consistency
) -> None:
    await at_site_1(testbed, consistency)
    monkeypatch.setattr(memory, "MAX_DONE", 4)

    async def later() -> None:
        await asyncio.gather(*(testbed[1].put("guid", {"later": number}) for number in range(8)))

    answers.lost, answers.instead = 1, later
    with pytest.raises(OutcomeUnknownError, match="site 1 does not answer"):
        await testbed[3].put("guid", {"n": 2})
    found = await testbed[1].get("guid")
    assert found.version == 1 + 1 + 8
    assert found.value is not None
    assert "later" in found.value


async def test_server_that_knows_no_version_learns_it(
    testbed: dict[int, JetStream], answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await at_site_1(testbed, Consistency.TOTAL_WRITES)
    monkeypatch.setattr(memory, "MAX_DONE", 4)
    await asyncio.gather(*(testbed[1].put("guid", {"n": number}) for number in range(8)))
    assert (await testbed[2].put("guid", {"n": 99})).record.version == 10
    answers.lost = 1
    assert (await testbed[2].put("guid", {"n": 100})).record.version == 11


async def test_memory_moves_with_the_record(testbed: dict[int, JetStream], answers: Answers) -> None:
    await at_site_1(testbed, Consistency.TOTAL)

    async def move() -> None:
        await testbed[1].place("guid", [2])
        await testbed[2].put("guid", {"n": 3})

    answers.lost, answers.instead = 1, move
    written = await testbed[3].put("guid", {"n": 2})
    assert (written.record.version, written.record.value) == (2, {"n": 2})
    assert (await testbed[3].get("guid")).version == 3


async def test_repetition_does_not_run_beside_the_attempt_in_progress(
    testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    await at_site_1(testbed, Consistency.TOTAL)
    monkeypatch.setattr(relay, "ANSWER_TIMEOUT", ATTEMPT)
    run, begun, begun_meanwhile = testbed[1]._write_here, 0, 0

    async def slow_at_first(one: Write, **how: Any) -> Written:
        nonlocal begun, begun_meanwhile
        begun += 1
        if begun == 1:
            await asyncio.sleep(4 * ATTEMPT)
            begun_meanwhile = begun - 1
        return await run(one, **how)

    monkeypatch.setattr(testbed[1], "_write_here", slow_at_first)
    assert (await testbed[3].put("guid", {"n": 2})).record.version == 2
    assert begun_meanwhile == 0


async def test_refusal_of_a_repetition_is_not_taken_for_that_of_the_write(testbed: dict[int, JetStream], answers: Answers) -> None:
    """The first attempt may still be in progress, and delete a record that another client has created again."""
    await at_site_1(testbed, Consistency.TOTAL)
    await testbed[1].delete("guid")
    answers.lost = 1
    with pytest.raises(OutcomeUnknownError):
        await testbed[3].delete("guid")
    await testbed[1].put("guid", {"n": 3})
    answers.lost = 1
    with pytest.raises(VersionError, match="has version 3, expected version 1"):
        await testbed[3].put("guid", {}, if_version=1)


async def test_store_without_acknowledgment_repeats_a_displaced_write(
    testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later writes have displaced the message from the stream when its writer looks for it."""
    await at_site_1(testbed, Consistency.TOTAL)
    publish, lost = testbed[1].connection.publish, [True]

    async def instead(subject: str, data: bytes, after: int, id_: str) -> int:
        sequence = await publish(subject, data, after, id_)
        if not lost:
            return sequence
        lost.clear()
        for number in range(HISTORY + 1):
            await testbed[2]._write_here(Write("guid", b'{"later":%d}' % number))
        raise NoAnswerError

    monkeypatch.setattr(testbed[1].connection, "publish", instead)
    written = await testbed[1].put("guid", {"n": 2})
    assert (written.record.version, written.record.value) == (2, {"n": 2})
    assert (await testbed[3].get("guid")).version == 2 + HISTORY + 1


async def test_histories_with_lost_answers_are_linearizable(testbed: dict[int, JetStream], answers: Answers) -> None:
    await testbed[1].put("guid", {"v": "0"}, consistency=Consistency.TOTAL)
    await testbed[1].place("guid", [1])
    history, answers.rate = History(), 0.3
    first = history.begin("put", "0")
    history.end(first, (1, "0"))

    async def client(site: int, number: int) -> None:
        for n in range(6):
            value = f"{site}.{number}.{n}"
            operation = history.begin("put", value)
            history.end(operation, ((await testbed[site].put("guid", {"v": value})).record.version, value))
            operation = history.begin("read")
            found = await testbed[site].get("guid")
            assert found.value is not None
            history.end(operation, (found.version, found.value["v"]))

    await asyncio.gather(*(client(site, number) for site in SITES for number in range(2)))
    versions = sorted(one.result[0] for one in history.operations if one.kind == "put" and one.result is not None)
    assert versions == list(range(1, 1 + 1 + 3 * 2 * 6)), "no write has failed, and none is done twice"
    assert linearizable(history.operations)
    assert porcupines([history.operations]) == [True]


# Killed servers


def serve(folder: Path, store: str) -> subprocess.Popen[bytes]:
    """Start the record server of site 1 in its own process, and wait until it serves."""
    config, log = folder / "frontage.yaml", folder / "server.log"
    text = EXAMPLE.read_text(encoding="utf-8")
    text += f"\nsite: {{ id: 1, vtep: 203.0.113.9 }}\nrecords:\n  listen: 127.0.0.1:0\n  store: {store}\n"
    config.write_text(text)
    with log.open("wb") as file:
        command = [Path(sys.executable).with_name("frontage"), "records", "serve", "-c", config]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    while "records at" not in log.read_text():
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    return process


async def test_record_server_killed_between_write_and_answer(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = serve(tmp_path, ",".join(three.urls))
    sender = await JetStream.open(three.urls, 2, [1], serves=False)
    request = Connection.request

    async def instead(self: Connection, subject: str, data: bytes, seconds: float) -> bytes | None:
        answer = await request(self, subject, data, seconds)
        if process.poll() is None and b"first" in data:
            process.kill()
            process.wait()
            raise TimeoutError
        return answer

    try:
        await sender.put("guid", {"n": 1}, consistency=Consistency.TOTAL)
        monkeypatch.setattr(Connection, "request", instead)
        written = await sender.put("guid", {"n": "first"})
        assert process.poll() is not None
        assert (written.record.version, written.record.value) == (2, {"n": "first"})
        assert (await sender.put("guid", {"n": 3})).record.version == 3
    finally:
        process.kill()
        process.wait()
        await sender.close()


async def test_nats_server_killed_between_write_and_answer(three: Cluster, answers: Answers) -> None:
    """The nats-server of the sender is killed, with the answer on its way."""
    home = await JetStream.open(three.urls, 1, [1])
    sender = await JetStream.open(three.urls, 2, [1], serves=False)
    try:
        for version in range(1, 4):
            assert (await sender.put("guid", {"n": 1}, consistency=Consistency.TOTAL)).record.version == version
        url = sender.connection._client.connected_url
        assert url is not None

        async def kill() -> None:
            three.kill(next(node for node in three.nodes if node.client == url.port))

        answers.lost, answers.instead = 1, kill
        written = await sender.put("guid", {"n": 4})
        assert (written.record.version, written.record.value) == (4, {"n": 4})
        assert (await sender.put("guid", {"n": 5})).record.version == 5
    finally:
        await sender.close()
        await home.close()

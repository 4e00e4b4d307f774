# SPDX-License-Identifier: Apache-2.0
"""The embedded engine: durability of acknowledged writes, and detection of unusable files."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage_records import embedded
from frontage_records.client import RecordClient
from frontage_records.embedded import Embedded
from frontage_records.errors import EngineError, NotFoundError, RecordError
from frontage_records.record import Consistency, Record
from records_history import NEVER, History, linearizable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "records.db"
    embedded.create(file)
    return file


async def test_missing_file_is_not_an_empty_store(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no such store: restore it, or create an empty one"):
        await Embedded.open(tmp_path / "records.db")
    assert not list(tmp_path.iterdir())


def test_create_keeps_existing_store(file: Path) -> None:
    with pytest.raises(EngineError, match="exists already"):
        embedded.create(file)
    with pytest.raises(EngineError, match="cannot be created"):
        embedded.create(file / "below")


async def test_damaged_file_is_detected_at_start(file: Path) -> None:
    store = await Embedded.open(file)
    await asyncio.gather(*(store.put(f"guid-{i}", {"v": "x" * 400}) for i in range(200)))
    await store.close()
    whole = file.read_bytes()
    page = b"\xff" * 4096
    for damaged in (b"", b"no database" * 1000, whole[:8192] + page + page + whole[16384:], whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(EngineError, match=r"damaged|not a record store"):
            await Embedded.open(file)
    file.write_bytes(whole)
    store = await Embedded.open(file)
    assert len((await store.get("guid-7")).value or {}) == 1
    await store.close()


async def test_database_of_another_program_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    with pytest.raises(EngineError, match="not a record store"):
        await Embedded.open(file)


async def test_newer_schema_is_rejected(file: Path) -> None:
    newer = sqlite3.connect(file)
    newer.execute(f"PRAGMA user_version = {embedded.SCHEMA + 1}")
    newer.close()
    with pytest.raises(EngineError, match="schema 2, but this program has schema 1"):
        await Embedded.open(file)


async def test_second_process_cannot_open_the_file(file: Path) -> None:
    store = await Embedded.open(file)
    with pytest.raises(EngineError, match="stop the other server that has it open"):
        await Embedded.open(file)
    await store.close()
    await (await Embedded.open(file)).close()


async def test_writes_to_removed_file_are_not_acknowledged(file: Path) -> None:
    store = await Embedded.open(file)
    await store.put("guid", {"n": 1})
    file.rename(file.with_suffix(".moved"))
    with pytest.raises(EngineError, match="removed or replaced"):
        await store.put("guid", {"n": 2})
    file.with_suffix(".moved").rename(file)
    assert (await store.get("guid")).value == {"n": 1}
    await store.close()


async def test_cancelled_caller_does_not_disturb_others(file: Path) -> None:
    store = await Embedded.open(file)
    puts = [asyncio.ensure_future(store.put("guid", {"n": n}, consistency=Consistency.TOTAL)) for n in range(50)]
    await asyncio.sleep(0)
    for given_up in puts[10:20]:
        given_up.cancel()
    results = await asyncio.gather(*puts, return_exceptions=True)
    versions = [result.record.version for result in results if not isinstance(result, BaseException)]
    assert versions == sorted(set(versions))
    assert (await store.get("guid")).version >= max(versions)
    await store.close()


class Server:
    """A process that runs `frontage records serve`."""

    def __init__(self, folder: Path):
        self.config = folder / "frontage.yaml"
        records = "\nrecords:\n  listen: 127.0.0.1:0\n  store: sqlite:///records.db\n"
        self.config.write_text(EXAMPLE.read_text(encoding="utf-8") + records, encoding="utf-8")
        self.process: subprocess.Popen[str] | None = None

    def run(self, command: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "frontage", "records", command, "-c", str(self.config)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def start(self) -> str:
        """Start the server, and return its URL."""
        self.process = self.run("serve")
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("records at http://"), f"{line!r} {self.process.communicate()}"
        return line.split()[-1].removesuffix("/records/GUID")

    def end(self, number: signal.Signals) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(number)
        self.process.communicate()
        code, self.process = self.process.returncode, None
        return code


async def test_create_and_serve_commands(tmp_path: Path) -> None:
    server = Server(tmp_path)
    refused = server.run("serve")
    assert "no such store" in refused.communicate()[1]
    assert refused.returncode == 1
    created = server.run("create")
    assert "empty store created" in created.communicate()[0]
    url = server.start()
    try:
        second = server.run("serve")
        assert "stop the other server that has it open" in second.communicate()[1]
        assert second.returncode == 1
        text, port = server.config.read_text(encoding="utf-8"), url.rpartition(":")[2]
        server.config.write_text(text.replace("127.0.0.1:0", f"127.0.0.1:{port}").replace("records.db", "two.db"))
        assert server.run("create").wait() == 0
        third = server.run("serve")
        assert f"records.listen: 127.0.0.1:{port}: cannot be bound: " in third.communicate()[1]
        assert third.returncode == 1
        async with RecordClient(url) as client:
            await client.put("guid", {"n": 1})
            changes = client.subscribe("guid")
            assert (await anext(changes)).value == {"n": 1}
            assert server.end(signal.SIGTERM) == 0
            assert [record async for record in changes] == []
    finally:
        server.end(signal.SIGKILL)


async def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    """Kill the server three times during writes. The history over all its runs is linearizable."""
    server = Server(tmp_path)
    server.run("create").wait()
    histories = {f"guid-{i}": History() for i in range(4)}
    try:
        for life in range(3):
            url, enough = server.start(), asyncio.Semaphore(0)

            async def write(client: RecordClient, guid: str, by: str, enough: asyncio.Semaphore) -> None:
                for n in range(10_000):
                    operation = histories[guid].begin("put", f"{by}.{n}")
                    try:
                        written = await client.put(guid, {"v": f"{by}.{n}"}, consistency=Consistency.TOTAL)
                    except RecordError:
                        # The outcome of this write is unknown.
                        return
                    histories[guid].end(operation, (written.record.version, f"{by}.{n}"))
                    enough.release()

            async with RecordClient(url) as client, asyncio.TaskGroup() as tasks:
                for guid in histories:
                    for by in "ab":
                        tasks.create_task(write(client, guid, f"{life}{by}", enough))
                for _ in range(60):
                    await enough.acquire()
                server.end(signal.SIGKILL)
        async with RecordClient(server.start()) as client:
            for guid, history in histories.items():
                operation = history.begin("read")
                record = await client.get(guid)
                history.end(operation, (record.version, _text(record)))
                known = [one for one in history.operations if one.end != NEVER]
                assert known
                assert linearizable(history.operations), guid
            with pytest.raises(NotFoundError):
                await client.get("guid-none")
    finally:
        server.end(signal.SIGKILL)


def _text(record: Record) -> str:
    assert record.value is not None
    return str(record.value["v"])

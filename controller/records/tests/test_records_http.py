# SPDX-License-Identifier: Apache-2.0
"""The HTTP server and its client: the plain HTTP interface, and the same errors on both sides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from conftest import EXAMPLE
from frontage.config import ConfigError, loads
from frontage_records import http
from frontage_records.client import RecordClient
from frontage_records.errors import (
    ConsistencyError,
    EngineError,
    GuidError,
    NoOrderError,
    NotFoundError,
    SiteError,
    SizeError,
    StampError,
    VersionError,
)
from frontage_records.record import Consistency
from frontage_records.ring import PARTITIONS, Ring, partition
from frontage_records.store import Store
from records_engines import NOW, SqliteEngine


class Served:
    def __init__(self, store: Store, url: str):
        self.store, self.url = store, url


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    store = await SqliteEngine(tmp_path).open()
    runner = await http.start(store, Ring([1], 3), "127.0.0.1", 0)
    host, port = runner.addresses[0][:2]
    yield Served(store, f"http://{host}:{port}")
    await store.close()
    await runner.cleanup()


@pytest.fixture
async def client(served: Served) -> AsyncIterator[RecordClient]:
    async with RecordClient(served.url, clock=lambda: NOW) as found:
        yield found


@pytest.fixture
async def curl() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_client_gets_what_it_put(client: RecordClient) -> None:
    written = await client.put("films.example", {"a": [1, "ä"]}, consistency=Consistency.TOTAL)
    assert written.applied
    assert await client.get("films.example") == written.record
    assert (await client.delete("films.example", if_version=1)).record.version == 2
    with pytest.raises(NotFoundError):
        await client.get("films.example")
    assert (await client.put("films.example", {}, if_version=0)).record.version == 3


async def test_client_writes_keep_order_with_stopped_clock(client: RecordClient) -> None:
    for n in range(5):
        assert (await client.put("guid", {"n": 9 - n})).applied
    assert (await client.get("guid")).value == {"n": 5}
    assert not (await client.put("guid", {"n": 0}, stamp=NOW)).applied


async def test_errors_reach_the_client(client: RecordClient) -> None:
    await client.put("eventual", {})
    await client.put("total", {}, consistency=Consistency.TOTAL)
    for wrong, kind in (
        (client.get("none"), NotFoundError),
        (client.put("eventual", {}, if_version=1), NoOrderError),
        (client.put("eventual", {}, consistency=Consistency.TOTAL), ConsistencyError),
        (client.put("eventual", {}, stamp=NOW * 2), StampError),
        (client.put("total", {}, if_version=2), VersionError),
        (client.put("big", {"v": "x" * 1000}), SizeError),
        (client.put("bigger", {"v": "x" * 100_000}), SizeError),
        (client.place("total", [9]), SiteError),
        (client.get("a b"), GuidError),
    ):
        with pytest.raises(kind):
            await wrong


async def test_patch_updates_a_counter(served: Served, curl: aiohttp.ClientSession) -> None:
    url = f"{served.url}/records/visits"
    async with curl.patch(url, data=b'{"total": 1}') as answer:
        assert answer.status == 404
    for total in (2, 4):
        async with curl.patch(f"{url}?consistency=counter", data=b'{"total": 2}') as answer:
            assert (answer.status, (await answer.json())["value"]) == (200, {"total": total})
            assert answer.headers["ETag"] == f'W/"{total // 2}"'
    async with curl.put(url, data=b'{"total": 2}') as answer:
        assert (answer.status, (await answer.json())["error"]) == (409, "other_method")
    async with curl.patch(url, data=b'{"total": "2"}') as answer:
        assert (answer.status, (await answer.json())["error"]) == (400, "bad_document")
    async with curl.patch(url, data=b'{"total": 2}', headers={"If-Match": '"2"'}) as answer:
        assert (answer.status, (await answer.json())["error"]) == (400, "bad_request")


async def test_engine_failure_is_reported(client: RecordClient, served: Served) -> None:
    await served.store.close()
    with pytest.raises(EngineError, match="is closed"):
        await client.get("guid")


async def test_missing_server_is_reported() -> None:
    async with RecordClient("http://127.0.0.1:1") as client:
        with pytest.raises(EngineError, match="check that the server is running"):
            await client.put("guid", {})


async def test_subscription(client: RecordClient) -> None:
    changes = client.subscribe("guid")
    first = asyncio.ensure_future(anext(changes))
    await client.put("guid", {"n": "line\nbreak"}, consistency=Consistency.TOTAL)
    assert (await first).value == {"n": "line\nbreak"}
    await client.delete("guid")
    assert (await anext(changes)).document is None
    await changes.aclose()


async def test_plain_http_interface(served: Served, curl: aiohttp.ClientSession) -> None:
    url = f"{served.url}/records/films.example"
    async with curl.put(f"{url}?consistency=total-writes", data=b'{"a": 1}', headers={"Frontage-Stamp": str(NOW)}) as answer:
        assert answer.status == 200
        assert answer.headers["ETag"] == '"1"'
        expected = {"guid": "films.example", "consistency": "total-writes", "version": 1, "stamp": NOW, "applied": True}
        assert await answer.json() == expected
    async with curl.put(url, data=b'{"a": 2}', headers={"If-Match": '"7"'}) as answer:
        assert answer.status == 412
        assert (await answer.json())["error"] == "other_version"
    async with curl.get(url) as answer:
        assert (await answer.json())["value"] == {"a": 1}
    async with curl.get(f"{url}/changes") as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        lines = [(await answer.content.readline()).decode() for _ in range(4)]
    assert lines[:2] == ["event: record\n", "id: 1\n"]
    assert json.loads(lines[2].removeprefix("data: "))["value"] == {"a": 1}
    async with curl.get(f"{url}/sites") as answer:
        assert await answer.json() == {"guid": "films.example", "sites": [1], "controllers": [1]}
    async with curl.put(f"{served.url}/records/eventual", data=b"{}") as answer:
        assert answer.headers["ETag"] == f'W/"{NOW}"'
    async with curl.get(f"{served.url}/metrics") as answer:
        text = await answer.text()
    assert 'frontage_records_requests_total{method="PUT",result="other_version"} 1.0' in text
    assert 'frontage_records_requests_total{method="PUT",result="ok"} 2.0' in text


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        ("PUT", "/records/g", {}, b"", 400),
        ("PUT", "/records/g", {}, b"[1]", 400),
        ("PUT", "/records/g", {"Frontage-Stamp": "soon"}, b"{}", 400),
        ("PUT", "/records/g", {"Frontage-Stamp": "-1"}, b"{}", 422),
        ("PUT", "/records/g", {"Frontage-Stamp": "9" * 19}, b"{}", 422),
        ("PUT", "/records/g", {"If-Match": '"x"'}, b"{}", 400),
        ("PUT", "/records/g", {"If-None-Match": '"1"'}, b"{}", 400),
        ("PUT", "/records/g?consistency=strong", {}, b"{}", 400),
        ("PUT", "/records/g", {}, b'{"v":"' + b"x" * 5000 + b'"}', 413),
        ("PUT", "/records/a%20b", {}, b"{}", 400),
        ("PUT", "/records/g/sites", {}, b'{"sites": "1"}', 400),
        ("PUT", "/records/g/sites", {}, b'{"sites": [true]}', 400),
        ("PUT", "/records/g/sites", {}, b'{"sites": [1]}', 404),
        ("GET", "/records/a%2Fb", {}, b"", 400),
        ("POST", "/records/g", {}, b"{}", 405),
        ("GET", "/nothing", {}, b"", 404),
    ],
)
async def test_invalid_requests_are_reported_and_change_nothing(
    served: Served, curl: aiohttp.ClientSession, method: str, path: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    async with curl.request(method, URL(served.url + path, encoded=True), headers=headers, data=body) as answer:
        found = await answer.json()
        assert (answer.status, set(found)) == (status, {"error", "message"}), found
    with pytest.raises(NotFoundError):
        await served.store.get("g")


# Consistent hashing


def test_controllers_are_distinct_and_balanced() -> None:
    ring = Ring(range(1, 11), 3)
    kept: dict[int, int] = {}
    for part in range(PARTITIONS):
        controllers = ring.controllers(part)
        assert len(set(controllers)) == 3
        kept[controllers[0]] = kept.get(controllers[0], 0) + 1
    assert len(kept) == 10


def test_removing_a_site_moves_few_partitions() -> None:
    before, after = Ring(range(1, 11), 3), Ring(range(1, 10), 3)
    moved = [part for part in range(PARTITIONS) if before.controllers(part)[0] not in (10, after.controllers(part)[0])]
    assert len(moved) <= PARTITIONS // 10


def test_fewer_sites_than_controllers() -> None:
    assert Ring([7], 3).controllers(5) == (7,)
    with pytest.raises(ValueError, match="no sites"):
        Ring([], 3)
    assert {partition(f"guid-{i}") for i in range(1000)} == set(range(PARTITIONS))


# Configuration


DNS = 'zone: example, name_servers: [ns1.example], contact: h.example, servers: {1: "http://a:1", 2: "http://b:1"}'


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("store: mysql://x", "records.store"),
        (
            "listen: here",
            'records.listen: invalid listen address "here": give host:port',
        ),
        ("listen: 127.0.0.1:65536", 'records.listen: invalid listen address "127.0.0.1:65536"'),
        ("listen: :80", 'records.listen: invalid listen address ":80"'),
        ("max_bytes: 10", "records.max_bytes"),
        ("max_ahead: -1", "records.max_ahead"),
        ("colour: red", "colour"),
        (f"dns: {{{DNS}, regions: {{198.51.100.0/24: [1, 7]}}}}", r"dns.regions.*: unknown site 7: use one of: 1, 2"),
        ("store: nats://127.0.0.1:4222", "the own site is unknown"),
    ],
)
def test_invalid_configuration_is_reported(section: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        loads(f"{EXAMPLE.read_text(encoding='utf-8')}\nrecords:\n  {section}\n", EXAMPLE)


def test_store_path_is_relative_to_configuration() -> None:
    config = loads(f"{EXAMPLE.read_text(encoding='utf-8')}\nrecords:\n  store: sqlite:///data/records.db\n", EXAMPLE)
    assert config.records is not None
    assert config.records.file == EXAMPLE.parent / "data" / "records.db"

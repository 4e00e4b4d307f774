# SPDX-License-Identifier: Apache-2.0
"""The client with servers at several sites: real HTTP, with handlers given by the tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from frontage_records import http
from frontage_records.client import RecordClient
from frontage_records.errors import EngineError, NotFoundError, OutcomeUnknownError
from frontage_records.record import Consistency
from frontage_records.ring import Ring, partition
from frontage_records.routing import Routing
from records_engines import SqliteEngine

GUID = "films.example"
SITES = (1, 2, 3, 4, 5)
CONTROLLERS = Ring(SITES, 3).controllers(partition(GUID))
RECORD = {"guid": GUID, "consistency": "eventual", "version": 1, "stamp": 1, "value": {"a": 1}}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RecordTestbed:
    """Five sites. Each counts its requests and answers by its handler."""

    def __init__(self) -> None:
        self.actives: list[int] = [4, 5]
        self.asked: list[tuple[int, str, str]] = []
        self.handlers: dict[int, Handler] = {}
        self.urls: dict[int, str] = {}
        self.runners: dict[int, web.AppRunner] = {}

    async def start(self, site: int) -> None:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.asked.append((site, request.method, request.path))
            if request.path.endswith("/sites"):
                return web.json_response({"guid": GUID, "sites": self.actives})
            if site in self.handlers:
                return await self.handlers[site](request)
            if site not in self.actives:
                return web.json_response({"error": "not_found", "message": "not here"}, status=404)
            return web.json_response(RECORD | {"applied": True})

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = self.runners[site] = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.urls[site] = "http://{}:{}".format(*runner.addresses[0][:2])


@pytest.fixture
async def testbed() -> AsyncIterator[RecordTestbed]:
    found = RecordTestbed()
    await asyncio.gather(*(found.start(site) for site in SITES))
    yield found
    await asyncio.gather(*(runner.cleanup() for runner in found.runners.values()))


@asynccontextmanager
async def client(
    testbed: RecordTestbed, nearest_first: tuple[int, ...] = SITES, routing: Routing | None = None
) -> AsyncIterator[RecordClient]:
    async with RecordClient(testbed.urls, routing=routing) as found:
        for place, site in enumerate(nearest_first):
            latency = found.router.latency[site]
            latency.average = latency.estimate = 0.01 * (place + 1)
        yield found


async def test_requests_go_to_nearest_replica_and_controllers_are_queried_once(testbed: RecordTestbed) -> None:
    async with client(testbed) as found:
        for _ in range(3):
            assert (await found.get(GUID)).value == {"a": 1}
        assert found.router.latency[4].average != 0.04
    controller = min(CONTROLLERS)
    assert testbed.asked == [(controller, "GET", f"/records/{GUID}/sites"), *[(4, "GET", f"/records/{GUID}")] * 3]


async def test_reads_and_writes_fail_over_from_dead_site(testbed: RecordTestbed) -> None:
    async with client(testbed) as found:
        await found.get(GUID)
        await testbed.runners[4].cleanup()
        assert (await found.get(GUID)).version == 1
        assert (await found.put(GUID, {"a": 1})).applied
        assert found.router.latency[4].estimate > found.router.latency[5].estimate
    assert [site for site, _, path in testbed.asked if path == f"/records/{GUID}"] == [4, 5, 5]


async def test_silent_site_times_out_and_is_backed_off(testbed: RecordTestbed) -> None:
    release = asyncio.Event()

    async def silent(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.json_response(RECORD)

    testbed.handlers[4] = silent
    async with client(testbed) as found:
        assert (await found.get(GUID)).value == {"a": 1}
        assert found.router.latency[4].penalty == 2
        release.set()
    assert testbed.asked[-2:] == [(4, "GET", f"/records/{GUID}"), (5, "GET", f"/records/{GUID}")]


async def test_moved_record_is_located_again(testbed: RecordTestbed) -> None:
    async with client(testbed) as found:
        await found.get(GUID)
        testbed.actives = [2]
        assert (await found.get(GUID)).value == {"a": 1}
        assert found.router.latency[4].penalty == 1
    assert [site for site, _, path in testbed.asked if path == f"/records/{GUID}"] == [4, 4, 2]


async def test_missing_record_raises_not_found(testbed: RecordTestbed) -> None:
    testbed.actives = []
    async with client(testbed) as found:
        with pytest.raises(NotFoundError):
            await found.get(GUID)


async def test_write_with_unknown_outcome_is_not_repeated(testbed: RecordTestbed) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    testbed.handlers[4] = hang_up
    async with client(testbed) as found:
        with pytest.raises(OutcomeUnknownError):
            await found.put(GUID, {"a": 1})
        assert (await found.get(GUID)).value == {"a": 1}
    assert [(site, method) for site, method, path in testbed.asked if path == f"/records/{GUID}"] == [(4, "PUT"), (5, "GET")]


async def test_write_without_a_connection_goes_to_the_next_site(testbed: RecordTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site's network drops all packets, so that no connection is made: the write has not been sent."""
    connect = aiohttp.TCPConnector.connect

    async def dropped(self: aiohttp.TCPConnector, req: aiohttp.ClientRequest, **options: Any) -> Any:
        if str(req.url).startswith(testbed.urls[4]):
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {req.url}")
        return await connect(self, req, **options)

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", dropped)
    async with client(testbed) as found:
        assert (await found.put(GUID, {"a": 1})).applied
    assert [site for site, _, path in testbed.asked if path == f"/records/{GUID}"] == [5]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_write_on_lost_keepalive_connection_is_not_repeated(testbed: RecordTestbed, method: str) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with RecordClient(testbed.urls[4]) as found:
        assert (await found.get(GUID)).value == {"a": 1}
        testbed.handlers[4] = hang_up
        with pytest.raises(OutcomeUnknownError):
            await (found.put(GUID, {"a": 1}) if method == "PUT" else found.delete(GUID))
    assert [(site, method) for site, method, _ in testbed.asked] == [(4, "GET"), (4, method)]


async def test_failover_from_unavailable_engine(testbed: RecordTestbed) -> None:
    async def down(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "engine_unavailable", "message": "down"}, status=503)

    testbed.handlers[4] = down
    async with client(testbed) as found:
        assert (await found.put(GUID, {"a": 1})).applied


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_request_is_repeated_until_a_site_answers(testbed: RecordTestbed, method: str) -> None:
    refused = 0

    async def down(_: web.Request) -> web.StreamResponse:
        nonlocal refused
        refused += 1
        if refused >= 2 * len(testbed.actives):
            testbed.handlers.clear()
        return web.json_response({"error": "engine_unavailable", "message": "down"}, status=503)

    testbed.handlers = dict.fromkeys(testbed.actives, down)
    async with client(testbed, routing=Routing(deadline=60)) as found:
        if method == "GET":
            assert (await found.get(GUID)).value == {"a": 1}
        else:
            assert (await found.put(GUID, {"a": 1})).applied
    assert [site for site, _, path in testbed.asked if path == f"/records/{GUID}"] == [4, 5, 4, 5, 4]


async def test_request_fails_at_the_deadline(testbed: RecordTestbed) -> None:
    async def down(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "engine_unavailable", "message": "down"}, status=503)

    testbed.handlers = dict.fromkeys(testbed.actives, down)
    async with client(testbed, routing=Routing(deadline=2)) as found:
        with pytest.raises(EngineError, match="down"):
            await found.put(GUID, {"a": 1})
    rounds, rest = divmod(sum(path == f"/records/{GUID}" for _, _, path in testbed.asked), len(testbed.actives))
    assert rest == 0
    assert 1 <= rounds <= 4, "the pauses double, and an attempt needs a second"


async def test_no_reachable_site(testbed: RecordTestbed) -> None:
    async with client(testbed, routing=Routing(deadline=0.3)) as found:
        for runner in testbed.runners.values():
            await runner.cleanup()
        with pytest.raises(EngineError, match="check that the server is running"):
            await found.get(GUID)


async def test_servers_down_at_start_are_tried_last(testbed: RecordTestbed) -> None:
    await testbed.runners[4].cleanup()
    async with RecordClient(testbed.urls) as found:
        assert (await found.get(GUID)).value == {"a": 1}
    assert 4 not in [site for site, _, path in testbed.asked if path == f"/records/{GUID}"]


async def test_client_with_real_store(tmp_path: Path) -> None:
    """Two sites, one with an engine and one without a server."""
    store = await SqliteEngine(tmp_path).open()
    runner = await http.start(store, Ring([1, 2], 2), "127.0.0.1", 0)
    try:
        urls = {1: "http://{}:{}".format(*runner.addresses[0][:2]), 2: "http://127.0.0.1:9"}
        async with RecordClient(urls) as found:
            await found.put(GUID, {"n": 1}, consistency=Consistency.TOTAL)
            await found.put(GUID, {"n": 2}, if_version=1)
            assert (await found.get(GUID)).value == {"n": 2}
            async for record in found.subscribe(GUID):
                assert record.value == {"n": 2}
                break
            await found.delete(GUID)
            with pytest.raises(NotFoundError):
                await found.get(GUID)
    finally:
        await store.close()
        await runner.cleanup()

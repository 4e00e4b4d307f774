"""The client before several sites' servers: real HTTP, each site's server being whatever the test makes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from frontage_records import http
from frontage_records.client import RecordClient
from frontage_records.errors import EngineError, NotFoundError, OutcomeUnknownError
from frontage_records.record import Consistency
from frontage_records.ring import Ring, partition
from records_engines import SqliteEngine

GUID = "films.example"
SITES = (1, 2, 3, 4, 5)
CONTROLLERS = Ring(SITES, 3).controllers(partition(GUID))
RECORD = {"guid": GUID, "consistency": "eventual", "version": 1, "stamp": 1, "value": {"a": 1}}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class World:
    """Five sites of which each counts what it is asked, and answers by its handler."""

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
async def world() -> AsyncIterator[World]:
    found = World()
    await asyncio.gather(*(found.start(site) for site in SITES))
    yield found
    await asyncio.gather(*(runner.cleanup() for runner in found.runners.values()))


@asynccontextmanager
async def client(world: World, nearest_first: tuple[int, ...] = SITES) -> AsyncIterator[RecordClient]:
    async with RecordClient(world.urls) as found:
        for place, site in enumerate(nearest_first):
            latency = found.router.latency[site]
            latency.average = latency.estimate = 0.01 * (place + 1)
        yield found


async def test_the_nearest_replica_is_asked_and_the_controllers_once(world: World) -> None:
    async with client(world) as found:
        for _ in range(3):
            assert (await found.get(GUID)).value == {"a": 1}
        assert found.router.latency[4].average < 0.04
    controller = min(CONTROLLERS)
    assert world.asked == [(controller, "GET", f"/records/{GUID}/sites"), *[(4, "GET", f"/records/{GUID}")] * 3]


async def test_a_dead_site_is_passed_by_reads_and_writes(world: World) -> None:
    async with client(world) as found:
        await found.get(GUID)
        await world.runners[4].cleanup()
        assert (await found.get(GUID)).version == 1
        assert (await found.put(GUID, {"a": 1})).applied
        assert found.router.latency[4].estimate > found.router.latency[5].estimate
    assert [site for site, _, path in world.asked if path == f"/records/{GUID}"] == [4, 5, 5]


async def test_a_site_that_is_silent_times_out_and_is_backed_off(world: World) -> None:
    release = asyncio.Event()

    async def silent(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.json_response(RECORD)

    world.handlers[4] = silent
    async with client(world) as found:
        assert (await found.get(GUID)).value == {"a": 1}
        assert found.router.latency[4].penalty == 2
        release.set()
    assert world.asked[-2:] == [(4, "GET", f"/records/{GUID}"), (5, "GET", f"/records/{GUID}")]


async def test_a_record_that_moved_is_asked_for_anew(world: World) -> None:
    async with client(world) as found:
        await found.get(GUID)
        world.actives = [2]
        assert (await found.get(GUID)).value == {"a": 1}
        assert found.router.latency[4].penalty == 1
    assert [site for site, _, path in world.asked if path == f"/records/{GUID}"] == [4, 4, 2]


async def test_a_record_that_is_nowhere(world: World) -> None:
    world.actives = []
    async with client(world) as found:
        with pytest.raises(NotFoundError):
            await found.get(GUID)


async def test_a_write_whose_fate_is_unknown_is_not_sent_again(world: World) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    world.handlers[4] = hang_up
    async with client(world) as found:
        with pytest.raises(OutcomeUnknownError):
            await found.put(GUID, {"a": 1})
        assert (await found.get(GUID)).value == {"a": 1}
    assert [(site, method) for site, method, path in world.asked if path == f"/records/{GUID}"] == [(4, "PUT"), (5, "GET")]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_write_on_a_kept_connection_that_is_lost_is_not_sent_again(world: World, method: str) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with RecordClient(world.urls[4]) as found:
        assert (await found.get(GUID)).value == {"a": 1}
        world.handlers[4] = hang_up
        with pytest.raises(OutcomeUnknownError):
            await (found.put(GUID, {"a": 1}) if method == "PUT" else found.delete(GUID))
    assert [(site, method) for site, method, _ in world.asked] == [(4, "GET"), (4, method)]


async def test_an_engine_that_is_down_at_one_site(world: World) -> None:
    async def down(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "engine_unavailable", "message": "down"}, status=503)

    world.handlers[4] = down
    async with client(world) as found:
        assert (await found.put(GUID, {"a": 1})).applied


async def test_no_site_at_all(world: World) -> None:
    async with client(world) as found:
        for runner in world.runners.values():
            await runner.cleanup()
        with pytest.raises(EngineError, match="is the server running"):
            await found.get(GUID)


async def test_servers_that_are_down_at_the_start_come_last(world: World) -> None:
    await world.runners[4].cleanup()
    async with RecordClient(world.urls) as found:
        assert (await found.get(GUID)).value == {"a": 1}
    assert 4 not in [site for site, _, path in world.asked if path == f"/records/{GUID}"]


async def test_with_the_store_itself(tmp_path: Path) -> None:
    """Of two sites' URLs, one has an engine and the other nobody."""
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

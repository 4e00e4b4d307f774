# SPDX-License-Identifier: Apache-2.0
"""The stores that share tests: both engines, and a client that is routed among servers of several sites."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from aiohttp.web import AppRunner

from frontage_records import embedded, http
from frontage_records.client import RecordClient
from frontage_records.document import check_guid
from frontage_records.embedded import Embedded
from frontage_records.errors import RecordError
from frontage_records.jetstream.engine import JetStream
from frontage_records.record import Bounds, Consistency, Record, Write, Written
from frontage_records.ring import Ring
from frontage_records.store import Store
from frontage_records.watch import Watch
from nats_cluster import Cluster, skip_without_server

NOW = 1_800_000_000_000_000
"""The fixed time of the tests' clock in microseconds since the Unix epoch."""
BOUNDS = Bounds(max_bytes=1000, max_ahead=5_000_000)


ROUTED = (1, 2, 3)
"""The sites that the routed client chooses from."""


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Engine(Protocol):
    clock: Clock

    async def open(self) -> Store:
        """Open the same, initially empty, store."""
        ...


class SqliteEngine:
    def __init__(self, folder: Path):
        self.file = folder / "records.db"
        self.clock = Clock()
        embedded.create(self.file)

    async def open(self) -> Store:
        return await Embedded.open(self.file, 1, BOUNDS, self.clock)


class JetStreamEngine:
    """JetStream at one site, with Raft groups of three servers."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.clock = Clock()

    async def open(self) -> Store:
        return await JetStream.open(self.cluster.urls, 1, [1], bounds=BOUNDS, clock=self.clock)


class RoutedStore(Store):
    """A client that chooses among the servers of three sites. Each has its own store on the same JetStream."""

    def __init__(self, clock: Clock):
        super().__init__(BOUNDS, clock)
        self._stores: list[JetStream] = []
        self._runners: list[AppRunner] = []
        self._own = contextlib.AsyncExitStack()

    async def open(self, cluster: Cluster) -> RoutedStore:
        urls = {}
        for site in ROUTED:
            store = await JetStream.open(cluster.urls, site, ROUTED, replicas=1, bounds=BOUNDS, clock=self.clock)
            runner = await http.start(store, Ring(ROUTED, 3), "127.0.0.1", 0)
            self._stores.append(store)
            self._runners.append(runner)
            urls[site] = "http://{}:{}".format(*runner.addresses[0][:2])
        self._client = await self._own.enter_async_context(RecordClient(urls, clock=self.clock))
        return self

    async def close(self) -> None:
        """Close the servers. The client stays open until `end`, for requests that fail."""
        for store in self._stores:
            await store.close()
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))

    async def end(self) -> None:
        await self._own.aclose()

    async def sites(self, guid: str) -> tuple[int, ...]:
        return await self._client.sites(guid)

    async def place(self, guid: str, sites: Collection[int]) -> None:
        await self._client.place(guid, list(sites))

    async def _read(self, guid: str) -> Record | None:
        return await self._client.get(guid)

    async def _write(self, write: Write) -> Written:
        if write.update is not None:
            assert isinstance(write.update, dict)
            return await self._client.update(write.guid, write.update, consistency=write.consistency)
        if write.document is None:
            return await self._client.delete(write.guid, stamp=write.stamp, if_version=write.if_version)
        value = Record(write.guid, Consistency.TOTAL, 0, 0, write.document).value
        assert value is not None
        return await self._client.put(
            write.guid, value, consistency=write.consistency, stamp=write.stamp, if_version=write.if_version
        )

    @asynccontextmanager
    async def _subscribe(self, guid: str) -> AsyncIterator[Watch]:
        watch = Watch()

        async def follow() -> None:
            try:
                async for record in self._client.subscribe(check_guid(guid)):
                    watch.offer(record)
            except RecordError as error:
                watch.end(error)
            else:
                watch.end()

        following = asyncio.create_task(follow())
        try:
            yield watch
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


class RoutedEngine:
    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.clock = Clock()
        self._opened: list[RoutedStore] = []

    async def open(self) -> Store:
        self._opened.append(await RoutedStore(self.clock).open(self.cluster))
        return self._opened[-1]

    async def end(self) -> None:
        for one in self._opened:
            await one.end()


async def close_all(stores: Iterable[Store]) -> None:
    """Close stores, also if their servers no longer answer."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(30):
            await asyncio.gather(*(store.close() for store in stores), return_exceptions=True)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers at site 1; the second is also at site 2, and the third also at site 3."""
    skip_without_server()
    cluster = Cluster(tmp_path_factory.mktemp("nats"), [[1], [1, 2], [1, 3]])
    cluster.start_all()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(params=["sqlite", "jetstream", "routed"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    if request.param == "sqlite":
        yield SqliteEngine(tmp_path)
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    await cluster.ready()
    if request.param == "jetstream":
        yield JetStreamEngine(cluster)
    else:
        routed = RoutedEngine(cluster)
        yield routed
        await routed.end()
    await cluster.clear()


@pytest.fixture
async def store(engine: Engine) -> AsyncIterator[Store]:
    found = await engine.open()
    yield found
    await found.close()

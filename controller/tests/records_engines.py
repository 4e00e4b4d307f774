"""The engines under test, so that all get the same tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from frontage.records import embedded
from frontage.records.embedded import Embedded
from frontage.records.jetstream.engine import JetStream
from frontage.records.record import Bounds
from frontage.records.store import Store
from nats_cluster import Cluster, skip_without_server

NOW = 1_800_000_000_000_000
"""Microseconds since the Unix epoch: the tests' clock stands still."""
BOUNDS = Bounds(max_bytes=1000, max_ahead=5_000_000)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Engine(Protocol):
    clock: Clock

    async def open(self) -> Store:
        """The same, at first empty, store again and again."""
        ...


class SqliteEngine:
    def __init__(self, folder: Path):
        self.file = folder / "records.db"
        self.clock = Clock()
        embedded.create(self.file)

    async def open(self) -> Store:
        return await Embedded.open(self.file, 1, BOUNDS, self.clock)


class JetStreamEngine:
    """One site, and all records in Raft groups of three."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.clock = Clock()

    async def open(self) -> Store:
        return await JetStream.open(self.cluster.urls, 1, [1], bounds=BOUNDS, clock=self.clock)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers, all of which are at site 1; the second is at site 2, too, and the third at site 3."""
    skip_without_server()
    cluster = Cluster(tmp_path_factory.mktemp("nats"), [[1], [1, 2], [1, 3]])
    cluster.start_all()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(params=["sqlite", "jetstream"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    if request.param == "sqlite":
        yield SqliteEngine(tmp_path)
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    await cluster.ready()
    yield JetStreamEngine(cluster)
    await cluster.clear()


@pytest.fixture
async def store(engine: Engine) -> AsyncIterator[Store]:
    found = await engine.open()
    yield found
    await found.close()

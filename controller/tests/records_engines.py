"""The engines under test, so that all get the same tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontage.records import embedded
from frontage.records.embedded import Embedded
from frontage.records.record import Bounds
from frontage.records.store import Store

NOW = 1_800_000_000_000_000
"""Microseconds since the Unix epoch: the tests' clock stands still."""
BOUNDS = Bounds(max_bytes=1000, max_ahead=5_000_000)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class SqliteEngine:
    """One file, opened again and again."""

    def __init__(self, folder: Path):
        self.file = folder / "records.db"
        self.clock = Clock()
        embedded.create(self.file)

    async def open(self) -> Store:
        return await Embedded.open(self.file, 1, BOUNDS, self.clock)

    async def close(self) -> None:
        await asyncio.sleep(0)


@pytest.fixture(params=["sqlite"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    assert request.param == "sqlite"
    found = SqliteEngine(tmp_path)
    yield found
    await found.close()


@pytest.fixture
async def store(engine: SqliteEngine) -> AsyncIterator[Store]:
    found = await engine.open()
    yield found
    await found.close()

# SPDX-License-Identifier: Apache-2.0
"""Settings and fixtures of the tests."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from nats_cluster import Cluster, skip_without_server

# Use the same examples in each run, and no deadlines, because machines may be slow.
settings.register_profile("frontage", deadline=None, derandomize=True)
settings.load_profile("frontage")

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "controller" / "examples" / "demo.yaml"

TEST_TIMEOUT = 240.0
"""Seconds after which an asynchronous test is cancelled.

pytest-timeout raises its error in whatever Python code is running. If that is a background task, asyncio stores the error there, and the
test goes on without a limit. Cancellation of the test's own task is always effective.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = _limited(item.obj)


def _limited(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(TEST_TIMEOUT):
            await test(*args, **kwargs)

    return run


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Three nats-servers of one site, which tests may kill."""
    skip_without_server()
    cluster = Cluster(tmp_path, [[1], [1], [1]])
    cluster.start_all()
    try:
        await cluster.ready()
        yield cluster
    finally:
        cluster.stop()

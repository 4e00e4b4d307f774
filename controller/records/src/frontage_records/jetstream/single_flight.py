# SPDX-License-Identifier: Apache-2.0
"""Merges concurrent calls of the same operation into one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Shares the result of one operation among concurrent callers with the same key.

    A call that arrives during a running operation waits for the next one. That starts after the call, so its result is never older
    than the call.
    """

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}

    async def do(self, key: str, operation: Callable[[], Awaitable[T]]) -> T:
        """Return the result of an operation that starts after this call."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._turn(key, operation, self._running.get(key)))
        # Cancellation of one caller must not affect the others.
        return await asyncio.shield(task)

    async def _turn(self, key: str, operation: Callable[[], Awaitable[T]], before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait([before])
        task = self._running[key] = self._next.pop(key)
        try:
            return await operation()
        finally:
            if self._running.get(key) is task:
                del self._running[key]

"""One operation for all who ask for the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Together(Generic[T]):
    """Who asks while an operation runs waits for the next one, which begins after it has asked: so what that finds is not older
    than the question."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}

    async def do(self, key: str, operation: Callable[[], Awaitable[T]]) -> T:
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._turn(key, operation, self._running.get(key)))
        # A caller that gives up does not take it from the others.
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

# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: changes of the configuration, of switches, of servers' health, and of operations."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

INTERVAL = 0.25
"""Seconds between comparisons of the objects."""
KEPT = 1000
"""The number of past events that a client can still get when it reconnects with `Last-Event-ID`."""
BEHIND = 256
"""The number of events that may be queued for a slow client before it is disconnected."""
KEEP_ALIVE = 15.0
"""Seconds without events after which clients get a comment, which reveals lost connections."""

IDLE = 60.0
"""Seconds for which events are collected after the last client has left, because it may reconnect."""

Objects = dict[tuple[str, str], dict[str, Any]]


class _Subscriber:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[str] = asyncio.Queue(BEHIND)
        self.is_behind = False

    def put(self, event: str) -> None:
        try:
            self.queue.put_nowait(event)
        except asyncio.QueueFull:
            self.is_behind = True


class Events:
    """Publishes events to all subscribers."""

    def __init__(self, look: Callable[[], Objects]):
        """``look`` returns the objects whose changes are events."""
        self._look = look
        self._number = 0
        self._kept: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._subscribers: set[_Subscriber] = set()
        self._objects: Objects = {}
        self._wanted_until = 0.0
        """The time until which events are collected without a client."""

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Send an event to all subscribers."""
        self._number += 1
        event = _format(kind, data, self._number)
        self._kept.append((self._number, event))
        for subscriber in self._subscribers:
            subscriber.put(event)

    async def watch(self) -> None:
        """Publish the changes of objects until cancelled. Without clients, the objects are not compared."""
        while True:
            await asyncio.sleep(INTERVAL)
            if self._is_wanted():
                self.compare(self._look())

    def _is_wanted(self) -> bool:
        return bool(self._subscribers) or time.monotonic() < self._wanted_until

    def _begin(self) -> None:
        """Read the objects again. Changes since the last reading are unknown, so earlier clients get the event `reset`."""
        self._objects = self._look()
        self._number += 1
        self._kept.clear()

    def compare(self, objects: Objects) -> None:
        """Publish what has changed since the last call."""
        for (kind, name), value in objects.items():
            if self._objects.get((kind, name)) != value:
                self.publish(kind, {"name": name, **value})
        for kind, name in self._objects.keys() - objects.keys():
            self.publish(kind, {"name": name, "removed": True})
        self._objects = objects

    async def stream(self, last_id: str | None) -> AsyncIterator[str]:
        """Yield the events after ``last_id`` for one client.

        A client that has missed too many events gets the event `reset` and has to read the state again.
        """
        if not self._is_wanted():
            self._begin()
        subscriber = _Subscriber()
        self._subscribers.add(subscriber)
        try:
            for event in self._missed(last_id):
                yield event
            while not subscriber.is_behind or not subscriber.queue.empty():
                try:
                    async with asyncio.timeout(KEEP_ALIVE):
                        yield await subscriber.queue.get()
                except TimeoutError:
                    yield ": keep-alive\n\n"
            yield _format("disconnected", {"reason": f"more than {BEHIND} events were queued: read faster"}, self._number)
        finally:
            self._subscribers.discard(subscriber)
            self._wanted_until = time.monotonic() + IDLE

    def _missed(self, last_id: str | None) -> list[str]:
        if last_id is None:
            return [f": connected\nid: {self._number}\n\n"]
        oldest = self._kept[0][0] if self._kept else self._number + 1
        if not last_id.isascii() or not last_id.isdigit() or not oldest - 1 <= int(last_id) <= self._number:
            return [_format("reset", {"reason": "events were lost: read the state again"}, self._number)]
        return [event for number, event in self._kept if number > int(last_id)]


def _format(kind: str, data: dict[str, Any], number: int) -> str:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"

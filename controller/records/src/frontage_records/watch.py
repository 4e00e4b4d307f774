"""Subscriptions: each gets a record's states in their order. One that is slow gets the latest and skips those between, so that
nobody's memory grows with what others do."""

from __future__ import annotations

import asyncio

from frontage_records.record import Record


class Watch:
    """One subscriber's view of one record."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._latest: Record | None = None
        self._error: Exception | None = None
        self._ended = False

    def offer(self, record: Record) -> None:
        """A state that the record has had; one that is not later than those before is left out."""
        if self._latest is None or record.order > self._latest.order:
            self._latest = record
            self._news.set()

    def end(self, error: Exception | None = None) -> None:
        self._ended, self._error = True, error
        self._news.set()

    async def next(self) -> Record | None:
        """The next state; None when it has ended. Raises what it ended with."""
        await self._news.wait()
        if self._ended:
            if self._error is not None:
                raise self._error
            return None
        self._news.clear()
        return self._latest


class Watches:
    """Of one process, by GUID. For use on one event loop."""

    def __init__(self) -> None:
        self._by_guid: dict[str, set[Watch]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_guid.values()))

    def add(self, guid: str) -> Watch:
        watch = Watch()
        self._by_guid.setdefault(guid, set()).add(watch)
        return watch

    def remove(self, guid: str, watch: Watch) -> None:
        found = self._by_guid.get(guid, set())
        found.discard(watch)
        if not found:
            self._by_guid.pop(guid, None)

    def offer(self, record: Record) -> None:
        for watch in self._by_guid.get(record.guid, ()):
            watch.offer(record)

    def end(self, error: Exception | None = None) -> None:
        for watches in self._by_guid.values():
            for watch in watches:
                watch.end(error)

# SPDX-License-Identifier: Apache-2.0
"""Subscriptions to records. Subscribers get states in order; slow ones skip to the latest, so that memory use stays bounded."""

from __future__ import annotations

import asyncio

from frontage_records.record import Record


class Watch:
    """One subscriber's view of one record."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._latest: Record | None = None
        self._error: Exception | None = None
        self._ended = False

    def offer(self, record: Record) -> None:
        """Pass on a state of the record. States that are not later than the last are dropped."""
        if self._latest is None or record.order > self._latest.order:
            self._latest = record
            self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        """End the subscription, with an error if there is one."""
        self._ended, self._error = True, error
        self._changed.set()

    async def next(self) -> Record | None:
        """Return the next state; None after the end. Raises the error with which the subscription ended."""
        await self._changed.wait()
        if self._ended:
            if self._error is not None:
                raise self._error
            return None
        self._changed.clear()
        return self._latest


class Watches:
    """All subscriptions of one process by GUID, for use on one event loop."""

    def __init__(self) -> None:
        self._by_guid: dict[str, set[Watch]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_guid.values()))

    def add(self, guid: str) -> Watch:
        """Add a subscriber."""
        watch = Watch()
        self._by_guid.setdefault(guid, set()).add(watch)
        return watch

    def remove(self, guid: str, watch: Watch) -> None:
        """Remove a subscriber."""
        found = self._by_guid.get(guid, set())
        found.discard(watch)
        if not found:
            self._by_guid.pop(guid, None)

    def offer(self, record: Record) -> None:
        """Pass on a state to the record's subscribers."""
        for watch in self._by_guid.get(record.guid, ()):
            watch.offer(record)

    def end(self, error: Exception | None = None) -> None:
        """End all subscriptions."""
        for watches in self._by_guid.values():
            for watch in watches:
                watch.end(error)

# SPDX-License-Identifier: Apache-2.0
"""The interface of all engines, and their common checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from frontage_records.document import Value, check_guid, encode
from frontage_records.errors import NotFoundError
from frontage_records.record import DEFAULT_BOUNDS, Bounds, Clock, Consistency, Record, Write, Written, now_us
from frontage_records.watch import Watch, Watches


class Store(ABC):
    """Records by GUID. All methods raise GuidError for an invalid GUID, and EngineError if the engine is unavailable."""

    def __init__(self, bounds: Bounds = DEFAULT_BOUNDS, clock: Clock = now_us):
        self.bounds = bounds
        self.clock = clock
        self._watches = Watches()

    @property
    def subscriptions(self) -> int:
        """Number of subscribers."""
        return len(self._watches)

    @property
    def unforwarded(self) -> int:
        """Number of records with accepted writes that this server has not yet forwarded to their logs."""
        return 0

    async def get(self, guid: str) -> Record:
        """Return the record; of ``total`` ones, the state at some instant between call and return. Raises NotFoundError."""
        record = await self._read(check_guid(guid))
        if record is None or record.document is None:
            raise NotFoundError(f"no such record: {guid}")
        return record

    async def put(
        self,
        guid: str,
        value: Value,
        *,
        consistency: Consistency | None = None,
        stamp: int | None = None,
        if_version: int | None = None,
    ) -> Written:
        """Replace the document. The write is durable when this returns.

        Raises DocumentError, SizeError, StampError, ConsistencyError, NoOrderError, VersionError, ContentionError and
        OutcomeUnknownError.
        """
        document = encode(value, self.bounds.max_bytes)
        return await self._write(Write(check_guid(guid), document, consistency, stamp, if_version))

    async def update(self, guid: str, changes: Mapping[str, Any], *, consistency: Consistency | None = None) -> Written:
        """Update a counter, set or map (`merges`), without overwriting concurrent updates. The update is durable when this returns.

        ``consistency``: creates the record if it does not exist. Raises DocumentError, SizeError, ConsistencyError, MergeError,
        NotFoundError, ContentionError and OutcomeUnknownError.
        """
        return await self._write(Write(check_guid(guid), None, consistency, update=changes))

    async def delete(self, guid: str, *, stamp: int | None = None, if_version: int | None = None) -> Written:
        """Delete the record, like `put`. Also raises NotFoundError."""
        return await self._write(Write(check_guid(guid), None, None, stamp, if_version))

    def subscribe(self, guid: str) -> AbstractAsyncContextManager[Watch]:
        """Watch the record: its present state, if any, then later states in order, deletions included."""
        return self._subscribe(check_guid(guid))

    @asynccontextmanager
    async def _subscribe(self, guid: str) -> AsyncIterator[Watch]:
        # Listen before reading, so that no state in between is missed.
        watch = self._watches.add(guid)
        try:
            record = await self._read(guid)
            if record is not None:
                watch.offer(record)
            yield watch
        finally:
            self._watches.remove(guid, watch)

    @abstractmethod
    async def sites(self, guid: str) -> tuple[int, ...]:
        """Return the record's replica set: the site that orders its writes, then the others. Raises NotFoundError."""

    @abstractmethod
    async def place(self, guid: str, sites: Collection[int]) -> None:
        """Move the record to these sites; the first orders its writes. No update is lost or reordered.

        Raises SiteError, NotFoundError, ContentionError, OutcomeUnknownError.
        """

    async def close(self) -> None:
        """Close the store and end subscriptions."""
        self._watches.end()

    @abstractmethod
    async def _read(self, guid: str) -> Record | None: ...

    @abstractmethod
    async def _write(self, write: Write) -> Written: ...

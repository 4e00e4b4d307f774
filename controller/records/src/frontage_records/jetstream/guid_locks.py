# SPDX-License-Identifier: Apache-2.0
"""Locks by GUID, which serialize the operations of one server on a record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from frontage_records.errors import ContentionError
from frontage_records.jetstream.connection import OPERATION_TIMEOUT


class GuidLocks:
    """Locks, which exist only while an operation holds or awaits them."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, guid: str) -> AsyncIterator[None]:
        """Hold the lock of a GUID. Raises ContentionError."""
        lock = self._locks.setdefault(guid, asyncio.Lock())
        try:
            async with asyncio.timeout(OPERATION_TIMEOUT):
                await lock.acquire()
        except TimeoutError:
            raise ContentionError(f"{guid}: earlier operations took more than {OPERATION_TIMEOUT:g} s: try again") from None
        try:
            yield
        finally:
            lock.release()

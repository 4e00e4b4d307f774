# SPDX-License-Identifier: Apache-2.0
"""Subscriptions to records: the notifications that streams send, and periodic reads in case one is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from frontage_records.errors import EngineError, RecordError
from frontage_records.jetstream.connection import Connection
from frontage_records.jetstream.entry import decode
from frontage_records.jetstream.placement_groups import CHANGES, token
from frontage_records.record import Record
from frontage_records.watch import Watches

log = logging.getLogger(__name__)

LAST_SEQUENCE = "Nats-Last-Sequence"
"""Header of a notification with the sequence number of the previous message of the same subject."""
FIRST_READ_DELAY = 0.1
READ_INTERVAL = 5.0
"""Seconds after which a subscribed record is read in case a notification was lost: soon after the start, then periodically."""


@dataclass(slots=True)
class _Entry:
    subscription: Subscription
    reader: asyncio.Task[None]
    watches: int = 1


class Subscriptions:
    """Passes notifications, and the results of ``read``, to ``watches``. ``read`` queries the leader."""

    def __init__(self, connection: Connection, watches: Watches, read: Callable[[str], Awaitable[Record | None]]):
        self._connection = connection
        self._watches = watches
        self._read = read
        self._entries: dict[str, _Entry] = {}
        self._closed = False

    async def begin(self, guid: str) -> None:
        """Start a subscription. Each call needs one `end`. Raises EngineError."""
        followed = self._entries.get(guid)
        if followed is not None:
            followed.watches += 1
            return

        changed = asyncio.Event()

        async def on_message(message: Msg) -> None:
            try:
                entry = decode(guid, message.data)
            except EngineError as error:
                log.warning("%s", error)
                return
            # The message is known to be valid if it directly follows the one that it names.
            if entry.record is not None and (message.headers or {}).get(LAST_SEQUENCE) == str(entry.after):
                self._watches.offer(entry.record)
            else:
                changed.set()

        subscription = await self._connection.listen(f"{CHANGES}.{token(guid)}", on_message)
        followed = self._entries.get(guid)
        if followed is not None:
            # A concurrent call has subscribed.
            followed.watches += 1
            await subscription.unsubscribe()
            return
        self._entries[guid] = _Entry(subscription, asyncio.create_task(self._read_periodically(guid, changed)))

    async def end(self, guid: str) -> None:
        """End a subscription."""
        followed = self._entries[guid]
        followed.watches -= 1
        if followed.watches == 0:
            del self._entries[guid]
            followed.reader.cancel()
            if not self._closed:
                await followed.subscription.unsubscribe()

    async def close(self) -> None:
        """End all subscriptions."""
        self._closed = True
        readers = [followed.reader for followed in self._entries.values()]
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    async def _read_periodically(self, guid: str, changed: asyncio.Event) -> None:
        """Read the record on a notification and periodically: notifications reach only servers that are connected at that moment."""
        pause = FIRST_READ_DELAY
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await changed.wait()
            changed.clear()
            pause = READ_INTERVAL
            with contextlib.suppress(RecordError):
                record = await self._read(guid)
                if record is not None:
                    self._watches.offer(record)

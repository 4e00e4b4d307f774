"""Records that somebody here subscribes to: the news that streams send of them, and looks at them in case that one was lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from frontage_records.errors import EngineError, RecordError
from frontage_records.jetstream.connection import Link
from frontage_records.jetstream.entry import decode
from frontage_records.jetstream.streams import CHANGES, token
from frontage_records.record import Record
from frontage_records.watch import Watches

log = logging.getLogger(__name__)

LAST_SEQUENCE = "Nats-Last-Sequence"
"""The header of news that has the sequence number of the message before, of the same subject."""
FIRST_LOOK = 0.1
LOOK = 5.0
"""Seconds after which a subscribed record is read, in case that its news was lost: soon after the beginning, then now and then."""


@dataclass(slots=True)
class _Followed:
    subscription: Subscription
    look: asyncio.Task[None]
    watches: int = 1


class Following:
    """Offers to ``watches`` what it hears, and what ``read`` finds by the leader's word."""

    def __init__(self, link: Link, watches: Watches, read: Callable[[str], Awaitable[Record | None]]):
        self._link = link
        self._watches = watches
        self._read = read
        self._followed: dict[str, _Followed] = {}
        self._closed = False

    async def begin(self, guid: str) -> None:
        """Once for each `end`. Raises EngineError."""
        followed = self._followed.get(guid)
        if followed is not None:
            followed.watches += 1
            return

        news = asyncio.Event()

        async def hear(message: Msg) -> None:
            try:
                entry = decode(guid, message.data)
            except EngineError as error:
                log.warning("%s", error)
                return
            # Whether it counts, is known at once if nothing else came since the one that it follows.
            if entry.record is not None and (message.headers or {}).get(LAST_SEQUENCE) == str(entry.after):
                self._watches.offer(entry.record)
            else:
                news.set()

        subscription = await self._link.listen(f"{CHANGES}.{token(guid)}", hear)
        followed = self._followed.get(guid)
        if followed is not None:
            # Another came meanwhile.
            followed.watches += 1
            await subscription.unsubscribe()
            return
        self._followed[guid] = _Followed(subscription, asyncio.create_task(self._look(guid, news)))

    async def end(self, guid: str) -> None:
        followed = self._followed[guid]
        followed.watches -= 1
        if followed.watches == 0:
            del self._followed[guid]
            followed.look.cancel()
            if not self._closed:
                await followed.subscription.unsubscribe()

    async def close(self) -> None:
        self._closed = True
        looks = [followed.look for followed in self._followed.values()]
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    async def _look(self, guid: str, news: asyncio.Event) -> None:
        """News are sent once, and to whom is connected at that moment."""
        pause = FIRST_LOOK
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await news.wait()
            news.clear()
            pause = LOOK
            with contextlib.suppress(RecordError):
                record = await self._read(guid)
                if record is not None:
                    self._watches.offer(record)

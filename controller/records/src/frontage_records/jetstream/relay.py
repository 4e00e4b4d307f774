"""Operations that need a record's order are done by a record server at the site that has it: the paper's primary.

Who is beside the group's leader, and knows what it wrote there last (`heads`), needs one round trip to that; who is far away would
first have to find out what is there, which is slow, and has been overtaken by then. So a server elsewhere sends the operation there
whole, one round trip over the wide area, and does it itself only where nobody answers to the name. Who does it makes no difference
to the order, which is the group's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from frontage_records.errors import OutcomeUnknownError, RecordError, raised
from frontage_records.jetstream.connection import PATIENCE, Link
from frontage_records.jetstream.wire import head_of, pack, record_of, unpack
from frontage_records.record import Consistency, Write, Written

log = logging.getLogger(__name__)

SUBJECT = "records-at"
"""And a dot, and a site's number: what the record servers there listen to, each message being one's."""
_LAST = 2.0
"""Seconds for what is under way when a server ends."""


@dataclass(frozen=True, slots=True)
class Answer:
    written: Written | None
    """None: there is no record, or it was moved; of a read it is always `applied`."""
    at: str
    """The class where the record is; empty if that is not known."""


class Relay:
    def __init__(
        self,
        link: Link,
        own: int,
        write: Callable[[Write], Awaitable[Answer]],
        read: Callable[[str], Awaitable[Answer]],
        place: Callable[[str, Collection[int]], Awaitable[Answer]],
    ):
        """``write``, ``read`` and ``place`` do it here."""
        self._link = link
        self._own = own
        self._write, self._read, self._place = write, read, place
        self._subscription: Subscription | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Raises EngineError."""
        self._subscription = await self._link.listen(f"{SUBJECT}.{self._own}", self._hear, queue="records")

    async def close(self) -> None:
        if self._subscription is not None:
            with contextlib.suppress(nats.errors.Error):
                await self._subscription.unsubscribe()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_LAST)
            for task in late:
                task.cancel()

    async def write(self, site: int, write: Write) -> Answer | None:
        """None: nobody is there, and nothing is done. Raises what the write raises there, and OutcomeUnknownError."""
        head = {
            "guid": write.guid,
            "deleted": write.document is None,
            "consistency": write.consistency,
            "stamp": write.stamp,
            "if_version": write.if_version,
        }
        return await self._ask(site, write.guid, pack(head, write.document))

    async def read(self, site: int, guid: str) -> Answer | None:
        """Likewise, of what an ordered read finds."""
        return await self._ask(site, guid, pack({"guid": guid, "read": True}))

    async def place(self, site: int, guid: str, sites: Collection[int]) -> Answer | None:
        """Likewise, of a move to ``sites``. Raises what the move raises there, and OutcomeUnknownError."""
        return await self._ask(site, guid, pack({"guid": guid, "sites": list(sites)}))

    async def _ask(self, site: int, guid: str, question: bytes) -> Answer | None:
        try:
            data = await self._link.request(f"{SUBJECT}.{site}", question, PATIENCE)
        except TimeoutError:
            raise OutcomeUnknownError(f"{guid}: site {site} does not answer; read the record to see what it has done") from None
        if data is None:
            return None
        head, document = unpack(data)
        if "error" in head:
            raise raised(head)
        record = record_of(guid, head, document)
        return Answer(None if record is None else Written(record, head["applied"]), head["at"])

    async def _hear(self, message: Msg) -> None:
        task = asyncio.create_task(self._serve(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, message: Msg) -> None:
        try:
            answer = _answer(await self._do(message.data))
        except RecordError as error:
            answer = pack({"error": error.code, "message": str(error)})
        except Exception as error:
            log.exception("%s", message.subject)
            answer = pack({"error": OutcomeUnknownError.code, "message": f"a fault of site {self._own}'s: {error!r}"})
        await message.respond(answer)

    async def _do(self, data: bytes) -> Answer:
        head, document = unpack(data)
        if head.get("read"):
            return await self._read(head["guid"])
        if "sites" in head:
            return await self._place(head["guid"], head["sites"])
        wanted = head["consistency"]
        consistency = None if wanted is None else Consistency(wanted)
        kept = None if head["deleted"] else document
        return await self._write(Write(head["guid"], kept, consistency, head["stamp"], head["if_version"]))


def _answer(answer: Answer) -> bytes:
    if answer.written is None:
        return pack({"at": answer.at})
    record = answer.written.record
    return pack({"at": answer.at, "applied": answer.written.applied} | head_of(record), record.document)

# SPDX-License-Identifier: Apache-2.0
"""Operations that need a record's order run at a record server of the site that orders it: the paper's primary.

A server near the Raft leader, which has the record's tail in its write cache, needs one short round trip. A distant server would first
have to read the tail, which is slow and often stale by then. So it sends the whole operation to the ordering site, in one wide-area
round trip, and runs it itself only if no server there answers. The Raft group determines the order in either case.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import astuple, dataclass
from typing import Any

import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from frontage_records.errors import OutcomeUnknownError, RecordError, from_problem
from frontage_records.jetstream.connection import OPERATION_TIMEOUT, Connection
from frontage_records.jetstream.memory import ForgottenError
from frontage_records.jetstream.wire import delta_of, header_of, header_of_delta, pack, record_of, unpack
from frontage_records.merges import Delta
from frontage_records.record import Consistency, Operation, Write, Written
from frontage_records.tasks import finish

log = logging.getLogger(__name__)

SUBJECT = "records-at"
"""Prefix of the subject of a site, before a dot and the site id. One of the site's record servers gets each message."""
ANSWER_TIMEOUT = 4.0
"""Seconds to wait for the answer to a read or write, which may then be repeated."""
_READ_ATTEMPTS = 3
_PING_TIMEOUT = 2.0
_CLOSE_TIMEOUT = 2.0
"""Seconds for operations in progress when a server closes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a relayed operation."""

    written: Written | None
    """None if there is no record, or for a move. For a read, `applied` is true."""
    at: str
    """The name of the record's placement group; empty if unknown."""
    has_moved: bool = False
    """True if another site orders the record's writes, and nothing has been done."""


class Relay:
    """Sends operations to other sites, and serves those for this site."""

    def __init__(
        self,
        connection: Connection,
        own: int,
        write: Callable[[Write], Awaitable[Answer]],
        read: Callable[[str], Awaitable[Answer]],
        place: Callable[[str, Collection[int]], Awaitable[Answer]],
    ):
        """``write``, ``read`` and ``place``: run the operations at this server."""
        self._connection = connection
        self._own = own
        self._write, self._read, self._place = write, read, place
        self._subscription: Subscription | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, list[Msg]] = {}
        """The messages to answer when an operation is done: its first attempt and the repetitions, by origin and number."""

    async def start(self) -> None:
        """Start serving. Raises EngineError."""
        self._subscription = await self._connection.listen(f"{SUBJECT}.{self._own}", self._on_message, queue="records")

    async def close(self) -> None:
        """Stop serving, and finish operations in progress."""
        if self._subscription is not None:
            with contextlib.suppress(nats.errors.Error):
                await self._subscription.unsubscribe()
        await finish(self._tasks, _CLOSE_TIMEOUT)

    async def write(self, site: int, write: Write) -> Answer | None:
        """Write at another site. Returns None, with nothing done, if no server listens there.

        Raises the errors of the write, ForgottenError, and OutcomeUnknownError after `ANSWER_TIMEOUT`.
        """
        head: dict[str, Any] = {
            "guid": write.guid,
            "deleted": write.document is None,
            "consistency": write.consistency,
            "stamp": write.stamp,
            "if_version": write.if_version,
            "forwarded": write.is_forwarded,
        }
        if write.update is not None:
            head["update"] = header_of_delta(write.update) if isinstance(write.update, Delta) else {"changes": write.update}
        if write.operation is not None:
            head["operation"] = list(astuple(write.operation))
        return await self._ask(site, write.guid, pack(head, write.document), ANSWER_TIMEOUT)

    async def read(self, site: int, guid: str) -> Answer | None:
        """Run an ordered read at another site. Unlike `write`, ask again if there is no answer."""
        question = pack({"guid": guid, "read": True})
        for _ in range(_READ_ATTEMPTS - 1):
            with contextlib.suppress(OutcomeUnknownError):
                return await self._ask(site, guid, question, ANSWER_TIMEOUT)
        return await self._ask(site, guid, question, ANSWER_TIMEOUT)

    async def place(self, site: int, guid: str, sites: Collection[int]) -> Answer | None:
        """Move a record to ``sites`` from another site, like `write`."""
        return await self._ask(site, guid, pack({"guid": guid, "sites": list(sites)}), OPERATION_TIMEOUT)

    async def ping(self, site: int) -> float | None:
        """Return the RTT to a server of another site in seconds; None without an answer."""
        began = asyncio.get_running_loop().time()
        try:
            data = await self._connection.request(f"{SUBJECT}.{site}", pack({"ping": True}), _PING_TIMEOUT)
        except TimeoutError:
            return None
        return None if data is None else asyncio.get_running_loop().time() - began

    async def _ask(self, site: int, guid: str, question: bytes, limit: float) -> Answer | None:
        try:
            data = await self._connection.request(f"{SUBJECT}.{site}", question, limit)
        except TimeoutError:
            raise OutcomeUnknownError(f"{guid}: site {site} does not answer: read the record to find out what was done") from None
        if data is None:
            return None
        head, document = unpack(data)
        if "error" in head:
            raise from_problem(head)
        if "forgotten" in head:
            raise ForgottenError(head["forgotten"])
        if head.get("moved"):
            return Answer(None, head["at"], has_moved=True)
        record = record_of(guid, head, document)
        return Answer(None if record is None else Written(record, head["applied"]), head["at"])

    async def _on_message(self, message: Msg) -> None:
        task = asyncio.create_task(self._serve(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, message: Msg) -> None:
        operation, waiting = "", [message]
        try:
            head, document = unpack(message.data)
            operation = " ".join(map(str, head.get("operation", ())[:2]))
            if operation in self._waiting:
                # Repetitions must not add load to a busy server: the attempt in progress answers this one, too.
                self._waiting[operation].append(message)
                return
            if operation:
                self._waiting[operation] = waiting
            answer = _answer(await self._do(head, document))
        except RecordError as error:
            answer = pack({"error": error.code, "message": str(error)})
        except ForgottenError as error:
            answer = pack({"forgotten": error.version})
        except Exception as error:
            log.exception("%s", message.subject)
            answer = pack(
                {"error": OutcomeUnknownError.code, "message": f"internal error at site {self._own}: {error!r}: see its log"}
            )
        self._waiting.pop(operation, None)
        for one in waiting:
            await one.respond(answer)

    async def _do(self, head: dict[str, Any], document: bytes) -> Answer:
        if head.get("ping"):
            return Answer(None, "")
        if head.get("read"):
            return await self._read(head["guid"])
        if "sites" in head:
            return await self._place(head["guid"], head["sites"])
        wanted = head["consistency"]
        consistency = None if wanted is None else Consistency(wanted)
        kept = None if head["deleted"] else document
        update = None
        if (found := head.get("update")) is not None:
            update = found["changes"] if "changes" in found else delta_of(found)
        operation = Operation(*head["operation"]) if "operation" in head else None
        forwarded = bool(head.get("forwarded"))
        return await self._write(
            Write(head["guid"], kept, consistency, head["stamp"], head["if_version"], update, forwarded, operation)
        )


def _answer(answer: Answer) -> bytes:
    if answer.written is None:
        return pack({"at": answer.at} | ({"moved": True} if answer.has_moved else {}))
    record = answer.written.record
    return pack({"at": answer.at, "applied": answer.written.applied} | header_of(record), record.document)

# SPDX-License-Identifier: Apache-2.0
"""The journal of a site: its accepted writes to eventual records, until the records' logs contain them.

The journal is a stream whose Raft group is inside the site, so the site can store writes in it while it is cut off from all others.
It has at most one message per record. The message contains all of the site's writes that the log may not contain yet: the latest
state of an ``eventual`` record, or the delta of a merged record.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from secrets import token_hex

from nats.js import api
from nats.js.errors import BadRequestError, NotFoundError

from frontage_records.errors import EngineError, OutcomeUnknownError
from frontage_records.jetstream.connection import (
    OPERATION_TIMEOUT,
    REPEATS_WINDOW,
    Connection,
    InFlightError,
    NoAnswerError,
    OvertakenError,
    RefusedError,
)
from frontage_records.jetstream.log import RETRY_DELAY
from frontage_records.jetstream.placement_groups import guid_of, tag, token
from frontage_records.jetstream.wire import delta_of, header_of, header_of_delta, pack, record_of, unpack
from frontage_records.merges import Delta
from frontage_records.record import Consistency, Record, Write, after_delta

UNSTORED = 1 << 62
"""The generation of a delta before its first message is stored, whose sequence number then determines the generation."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The writes to one record that a site has accepted."""

    guid: str
    consistency: Consistency
    record: Record | None = None
    """The latest state of an ``eventual`` record."""
    delta: Delta | None = None
    """The updates of a merged record."""

    def over(self, base: Record | None) -> Record:
        """Return the record with these writes. ``base``: a state of its log."""
        if self.delta is not None:
            if base is not None and base.document is None:
                # A deletion wins.
                return base
            return after_delta(self.guid, self.consistency, base, self.delta)
        assert self.record is not None
        return self.record if base is None or self.record.order > base.order else base

    def is_in(self, base: Record) -> bool:
        """Return whether a state of the record's log contains these writes."""
        return self.over(base) is base

    @property
    def write(self) -> Write:
        """Return the write that adds these writes to the record's log. It is idempotent."""
        if self.delta is not None:
            return Write(self.guid, None, update=self.delta, is_forwarded=True)
        assert self.record is not None
        return Write(self.guid, self.record.document, stamp=self.record.stamp, is_forwarded=True)

    def encode(self) -> bytes:
        """Return the data of a message."""
        if self.delta is not None:
            return pack({"consistency": self.consistency.value, "delta": header_of_delta(self.delta)})
        assert self.record is not None
        return pack(header_of(self.record), self.record.document)


@dataclass(frozen=True, slots=True)
class Pending:
    """A message of the journal."""

    sequence: int
    accepted: Accepted


class Journal:
    """The journal of this site. Call `open` before use."""

    def __init__(self, connection: Connection, site: int, replicas: int):
        self.site = site
        self.stream = f"records-journal-{site}"
        self._connection = connection
        self._replicas = replicas
        self._created = 0
        """Microseconds since the Unix epoch. Added to sequence numbers, so that generations increase if the stream is created again."""

    @property
    def is_open(self) -> bool:
        """True if the stream exists."""
        return self._created > 0

    async def open(self) -> None:
        """Create the stream unless it exists. Raises EngineError."""
        config = api.StreamConfig(
            name=self.stream,
            subjects=[self._subject("*", raw=True)],
            storage=api.StorageType.FILE,
            num_replicas=self._replicas,
            max_msgs_per_subject=1,
            placement=api.Placement(tags=[tag(self.site)]),
            duplicate_window=REPEATS_WINDOW,
            allow_direct=True,
        )
        try:
            await self._connection.retry(partial(self._connection.context.add_stream, config))
            created = (await self._connection.info(self.stream))["created"]
        except (BadRequestError, NotFoundError) as error:
            need = f"{self._replicas} servers with JetStream and the tag {tag(self.site)}"
            raise EngineError(f"{self.stream}: {error.description}: provide {need} in one cluster") from None
        self._created = int(datetime.fromisoformat(created[:19] + "+00:00").timestamp() * 1_000_000)

    async def read(self, guid: str, *, nearby: bool = False) -> Pending | None:
        """Return the record's message. ``nearby``: any server of the site may answer, possibly with an older state. Raises EngineError."""
        try:
            found = await self._connection.read(self.stream, self._subject(guid), None, nearby=nearby)
        except TimeoutError:
            found = await self._connection.read(self.stream, self._subject(guid), None, nearby=False)
        return None if found is None else Pending(found[0], self._decode(guid, *found))

    async def append(self, accepted: Accepted, after: Pending | None) -> Pending:
        """Replace the record's message ``after``; None for the first message.

        Raises OvertakenError if another server has replaced it, OutcomeUnknownError, EngineError and SizeError.
        """
        write, deadline = token_hex(8), asyncio.get_running_loop().time() + OPERATION_TIMEOUT
        doubt, is_lost = "", False
        expected = 0 if after is None else after.sequence
        while True:
            try:
                # Servers store a message with the same id once, and acknowledge it again.
                sequence = await self._connection.publish(self._subject(accepted.guid), accepted.encode(), expected, write)
                return Pending(sequence, self._numbered(accepted, sequence))
            except OvertakenError:
                if not doubt:
                    raise
                raise _unknown(accepted.guid, doubt) from None
            except InFlightError:
                pass
            except RefusedError as error:
                doubt = str(error)
                if expected and not is_lost and await self.read(accepted.guid) is None:
                    # Another server of this site has already forwarded and removed the message.
                    raise OvertakenError from None
            except NoAnswerError as error:
                doubt, is_lost = str(error), True
            if asyncio.get_running_loop().time() > deadline:
                raise _unknown(accepted.guid, doubt or "refused without a newer message")
            await asyncio.sleep(RETRY_DELAY)

    async def remove(self, pending: Pending) -> None:
        """Delete a message, unless a later one has replaced it. Raises EngineError."""
        await self._connection.remove(self.stream, pending.sequence)

    async def guids(self) -> list[str]:
        """Return the GUIDs of all messages. Raises EngineError, NotFoundError."""
        return [guid_of(subject.rpartition(".")[2]) for subject in await self._connection.subjects(self.stream)]

    def _subject(self, guid: str, *, raw: bool = False) -> str:
        return f"records-journal.{self.site}.{guid if raw else token(guid)}"

    def _decode(self, guid: str, sequence: int, data: bytes) -> Accepted:
        try:
            head, document = unpack(data)
            consistency = Consistency(head["consistency"])
            if "delta" in head:
                return self._numbered(Accepted(guid, consistency, delta=delta_of(head["delta"])), sequence)
            return Accepted(guid, consistency, record_of(guid, head, document))
        except (ValueError, KeyError, TypeError) as error:
            raise EngineError(
                f"{guid}: invalid message in {self.stream}: {error!r}: check whether another program writes to it"
            ) from None

    def _numbered(self, accepted: Accepted, sequence: int) -> Accepted:
        """Return the writes with the generation that the sequence number of the first message determines."""
        delta = accepted.delta
        if delta is None or delta.generation != UNSTORED:
            return accepted
        return replace(accepted, delta=replace(delta, generation=self._created + sequence))


def _unknown(guid: str, why: str) -> OutcomeUnknownError:
    return OutcomeUnknownError(f"{guid}: {why}: read the record to find out whether it was written")

# SPDX-License-Identifier: Apache-2.0
"""The log of a record: which of its messages in the stream are valid.

A message is published with ``Nats-Expected-Last-Subject-Sequence``, the last message that its writer has seen. The Raft leader refuses
it if another message has been stored since, or is in flight. nats-server does this for replicated streams from version 2.11 on: it
counts messages in flight, and a new leader accepts none before it has applied all entries that its predecessors committed. (Earlier
versions accepted all messages in flight: nats-server issue 4320, pull requests 5794, 6194.) So an accepted message directly follows
what its writer has seen, and the writer need not check.

Each message also names the message that it follows. It is valid only if it is the first to follow that message, and if that message
is valid. An old leader's answer is a prefix of the same order: it may be incomplete, but it never contradicts. With this rule a writer
that got no answer, or a refusal, finds out what has become of its message; and messages of other programs have no effect.

The rule alone would not suffice, because a stream keeps `HISTORY` messages per record. If more messages than that follow the same one
during a lookup, the first of them is dropped and another appears to be the first.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from frontage_records.errors import EngineError
from frontage_records.jetstream.connection import Connection, Message
from frontage_records.jetstream.entry import Entry, decode

HISTORY = 16
"""Messages per record that a stream keeps, so that readers can follow the log during concurrent writes."""
RETRY_DELAY = 0.05
"""Seconds between lookups."""
MAX_LOOKUPS = 50
"""Lookups of the last message: the answering server may not have it yet."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a record's log."""

    sequence: int
    """Sequence number of the last valid message; 0 without one."""
    entry: Entry
    """The content of that message."""
    last: int
    """Sequence number of the last message, valid or not."""


class TrimmedError(Exception):
    """Newer messages have displaced the wanted one from the stream."""


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads a record's messages from the leader, or from a mirror, which may lag. Without the mirror it raises TimeoutError."""

    connection: Connection
    stream: str
    subject: str
    nearby: bool = False

    async def last(self) -> Message | None:
        """Return the last message."""
        return await self.connection.read(self.stream, self.subject, None, nearby=self.nearby)

    async def after(self, sequence: int) -> Message | None:
        """Return the next message after ``sequence``."""
        return await self.connection.read(self.stream, self.subject, sequence + 1, nearby=self.nearby)


async def find_tail(reader: LogReader, guid: str) -> Tail:
    """Return the tail of a record's log. Raises EngineError."""
    for _ in range(MAX_LOOKUPS):
        found = await reader.last()
        if found is None:
            return Tail(0, Entry(0, None), 0)
        last, entry = found[0], decode(guid, found[1])
        if entry.last == entry.after:
            # The leader admitted nothing in between.
            return Tail(last, entry, last)
        # The message that it follows is valid, because its writer has seen it.
        at = valid = entry.after
        while at < last:
            message = await reader.after(at)
            if message is None:
                # The answering server lags.
                break
            at = message[0]
            candidate = decode(guid, message[1])
            if candidate.after == valid:
                valid, entry = at, candidate
        # `at` is beyond `last` if newer messages have displaced that one.
        if at == last:
            return Tail(valid, entry, last)
        await asyncio.sleep(RETRY_DELAY)
    raise EngineError(f"{guid}: its servers do not agree on its last message: try again")


async def find_successor(reader: LogReader, guid: str, after: int) -> tuple[Entry | None, int]:
    """Return the first message that follows ``after``, and the sequence number of the last message read.

    If the answering server does not know one, the result has None instead. Raises TrimmedError, EngineError.
    """
    at = after
    while (message := await reader.after(at)) is not None:
        at, entry = message[0], decode(guid, message[1])
        if entry.after == after:
            return entry, at
        if entry.after > after:
            # Its writer has seen later valid messages.
            raise TrimmedError
    return None, at

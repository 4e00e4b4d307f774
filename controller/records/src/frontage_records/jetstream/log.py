"""Which of a record's messages count.

A message is published with ``Nats-Expected-Last-Subject-Sequence``, the last message that its writer saw, and the group's leader
refuses it where another has come since or is on its way. From nats-server 2.11 on this holds for groups of several servers:
messages that are on their way are counted, and a new leader takes none before it has applied all that its predecessors committed.
(Earlier ones took all that were on their way together: nats-server issue 4320, pull requests 5794, 6194.) So a message that was
taken is the next behind what its writer saw, and its writer needs no look to know.

Each message also names the one that it follows, and counts only if it is the first to follow that, and that counts. An old leader's
answer is a beginning of the same order, so it may say less than there is, but never otherwise. By this who has no answer, or is
refused, finds out what has become of a message, and a message that somebody else has put into the stream changes nothing.

That alone would not be enough, because a stream keeps `HISTORY` messages of a record: where so many follow the same one, or follow
those that do, while somebody looks, the first of them is pushed out and another seems to be it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from frontage_records.errors import EngineError
from frontage_records.jetstream.connection import Link, Message
from frontage_records.jetstream.entry import Entry, decode

HISTORY = 16
"""Messages of a record that its stream keeps, for those who look at them while others write."""
PAUSE = 0.05
LOOKS = 50
"""Times that the last message is looked for: who answers may not have it yet."""


@dataclass(frozen=True, slots=True)
class Tip:
    sequence: int
    """Of the last message that counts; 0: there is none."""
    entry: Entry
    last: int
    """Of the last message, whether it counts or not."""


class GoneError(Exception):
    """What is asked for has been pushed out by newer messages."""


@dataclass(frozen=True, slots=True)
class Source:
    """A record's messages, by the leader's word; or a mirror's, as far as it has come: TimeoutError if it is not there."""

    link: Link
    stream: str
    subject: str
    nearby: bool = False

    async def last(self) -> Message | None:
        return await self.link.read(self.stream, self.subject, None, nearby=self.nearby)

    async def behind(self, sequence: int) -> Message | None:
        """The next one."""
        return await self.link.read(self.stream, self.subject, sequence + 1, nearby=self.nearby)


async def tip(source: Source, guid: str) -> Tip:
    """Raises EngineError."""
    for _ in range(LOOKS):
        found = await source.last()
        if found is None:
            return Tip(0, Entry(0, None), 0)
        last, entry = found[0], decode(guid, found[1])
        if entry.last == entry.after:
            # The leader let nothing in between the two.
            return Tip(last, entry, last)
        # What it follows, counts: who wrote it had seen that.
        at = counts = entry.after
        while at < last:
            message = await source.behind(at)
            if message is None:
                # Answered by one that has not come so far.
                break
            at = message[0]
            one = decode(guid, message[1])
            if one.after == counts:
                counts, entry = at, one
        # Beyond the last, if that has gone for newer ones meanwhile.
        if at == last:
            return Tip(counts, entry, last)
        await asyncio.sleep(PAUSE)
    raise EngineError(f"{guid}: those who keep it do not agree how far it has come; try again")


async def follower(source: Source, guid: str, after: int) -> tuple[Entry | None, int]:
    """The first message that follows ``after``; None: not there, as far as who answers knows. And the sequence number of the last
    that was looked at. Raises GoneError, EngineError."""
    at = after
    while (message := await source.behind(at)) is not None:
        at, entry = message[0], decode(guid, message[1])
        if entry.after == after:
            return entry, at
        if entry.after > after:
            # Who wrote it had seen later ones that count.
            raise GoneError
    return None, at

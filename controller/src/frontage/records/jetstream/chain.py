"""Which of a record's messages count.

What a Raft group promises is the order of its stream. JetStream's own refusal of messages that follow another than the last of
their subject (``Nats-Expected-Last-Subject-Sequence``) is younger than that, and was long none where a stream has several
servers: the leader looked before it proposed, so it took all that were on their way together (nats-server issue 4320), and
servers could come apart over who refused what (pull requests 5794, 6194). So it is not used. Each message names the one that it
follows, and counts only if it is the first to follow that, and that counts. Who writes waits until it sees that its own does; who
reads passes over those that do not. An old leader's answer is a beginning of the same order, so it may say less than there is,
but never otherwise.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from frontage.records.errors import EngineError, OutcomeUnknownError
from frontage.records.jetstream.entry import Entry, decode
from frontage.records.jetstream.link import Link, Message

HISTORY = 16
"""Messages of a record that its stream keeps. One that counts is lost if so many follow that do not, and each server has at most
one on its way for a record: so fewer servers than these may write to one record at the same moment."""
_PAUSE = 0.05
_LOOKS = 50
"""Times that what was acknowledged is looked for: who answers may not have it yet."""


@dataclass(frozen=True, slots=True)
class Tip:
    sequence: int
    """Of the last message that counts; 0: there is none."""
    entry: Entry


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
    for _ in range(_LOOKS):
        found = await source.last()
        if found is None:
            return Tip(0, Entry(0, None))
        last, entry = found[0], decode(guid, found[1])
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
            return Tip(counts, entry)
        await asyncio.sleep(_PAUSE)
    raise EngineError(f"{guid}: those who keep it do not agree how far it has come; try again")


async def accepted(source: Source, guid: str, after: int, sequence: int) -> bool:
    """Whether the message ``sequence``, which follows ``after``, counts. Raises EngineError, OutcomeUnknownError."""
    for _ in range(_LOOKS):
        at = after
        while at < sequence:
            message = await source.behind(at)
            if message is None:
                break
            at = message[0]
            if at > sequence:
                raise OutcomeUnknownError(f"{guid}: many have written since; read the record to see whether this was among them")
            if decode(guid, message[1]).after == after:
                return at == sequence
        await asyncio.sleep(_PAUSE)
    raise OutcomeUnknownError(f"{guid}: acknowledged, but not to be seen; read the record to see whether it was written")

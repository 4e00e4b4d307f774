# SPDX-License-Identifier: Apache-2.0
"""The content of a message in a stream: a record's state, or the group to which the record has moved."""

from __future__ import annotations

from dataclasses import dataclass

from frontage_records.errors import EngineError
from frontage_records.jetstream.memory import EMPTY, Memory, memory_of
from frontage_records.jetstream.wire import header_of, pack, record_of, unpack
from frontage_records.record import Record


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a record's log. ``epoch`` counts the record's moves.

    An entry with ``to``, the placement group to which the record moves at that epoch, is the stop request of Auspice, section 1.2.4:
    the last update in this group. It contains the record, so that any server that finds it can start the next group.
    """

    epoch: int
    record: Record | None
    """The record's state; None in the pointer of a partition to a record that has moved."""
    to: str | None = None
    after: int = 0
    """Sequence number of the message that this one follows; 0 for the first."""
    last: int | None = None
    """Sequence number of the last message that the writer had seen when the leader accepted this one; None if unknown."""
    write: str = ""
    """Unique id of this message, by which its writer can tell whether it was stored."""
    memory: Memory = EMPTY
    """The last writes to the record."""

    def encode(self) -> bytes:
        """Return the entry as the data of a message."""
        head: dict[str, object] = {"epoch": self.epoch, "after": self.after, "last": self.last, "write": self.write}
        if self.to is not None:
            head["to"] = self.to
        head |= self.memory.header()
        if self.record is None:
            return pack(head)
        return pack(head | header_of(self.record), self.record.document)


def decode(guid: str, data: bytes) -> Entry:
    """Decode the result of `Entry.encode`. Raises EngineError for anything else."""
    try:
        head, document = unpack(data)
        record = record_of(guid, head, document)
        return Entry(
            int(head["epoch"]),
            record,
            head.get("to"),
            int(head["after"]),
            head.get("last"),
            head.get("write", ""),
            memory_of(head),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(
            f"{guid}: invalid message: {error!r}: check whether another program writes to the streams records-*"
        ) from None

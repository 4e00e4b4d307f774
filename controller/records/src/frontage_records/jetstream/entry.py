"""What a message of a class's stream holds: a record, or where it has gone."""

from __future__ import annotations

from dataclasses import dataclass

from frontage_records.errors import EngineError
from frontage_records.jetstream.wire import head_of, pack, record_of, unpack
from frontage_records.record import Record


@dataclass(frozen=True, slots=True)
class Entry:
    """``epoch`` counts the record's moves. With ``to``, the class that it moved to at that epoch, it is the stop request of section
    1.2.4, the last update of this group: it has the record with it, so that anybody who finds it can start the next group."""

    epoch: int
    record: Record | None
    """None: gone, and started there long since."""
    to: str | None = None
    after: int = 0
    """The sequence number of the message that it follows; 0: it is the first."""
    last: int | None = None
    """That of the last message that its writer saw, behind which the leader took it; None: its writer has not said."""
    write: str = ""
    """Names this one writing of it, among all servers', so that who is in doubt can see whether it was done."""

    def encode(self) -> bytes:
        head: dict[str, object] = {"epoch": self.epoch, "after": self.after, "last": self.last, "write": self.write}
        if self.to is not None:
            head["to"] = self.to
        if self.record is None:
            return pack(head)
        return pack(head | head_of(self.record), self.record.document)


def decode(guid: str, data: bytes) -> Entry:
    """Raises EngineError for what `Entry.encode` has not made."""
    try:
        head, document = unpack(data)
        record = record_of(guid, head, document)
        return Entry(int(head["epoch"]), record, head.get("to"), int(head["after"]), head.get("last"), head.get("write", ""))
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(f"{guid}: its message is none of ours: {error!r}; who else writes to the streams records-*?") from None

"""What a message of a class's stream holds: a record, or where it has gone."""

from __future__ import annotations

import json
from dataclasses import dataclass

from frontage.records.errors import EngineError
from frontage.records.record import Consistency, Record


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
    write: str = ""
    """Names this one writing of it, among all servers', so that who is in doubt can see whether it was done."""

    def encode(self) -> bytes:
        """One line of JSON, then the document as it is."""
        head: dict[str, object] = {"epoch": self.epoch, "after": self.after, "write": self.write}
        if self.to is not None:
            head["to"] = self.to
        document = b""
        if self.record is not None:
            record = self.record
            head |= {"consistency": record.consistency.value, "version": record.version, "stamp": record.stamp}
            head["deleted"] = record.document is None
            document = record.document or b""
        return json.dumps(head, separators=(",", ":")).encode() + b"\n" + document


def decode(guid: str, data: bytes) -> Entry:
    """Raises EngineError for what `Entry.encode` has not made."""
    line, _, document = data.partition(b"\n")
    try:
        head = json.loads(line)
        record = None
        if "version" in head:
            kept = None if head["deleted"] else document
            record = Record(guid, Consistency(head["consistency"]), int(head["version"]), int(head["stamp"]), kept)
        return Entry(int(head["epoch"]), record, head.get("to"), int(head["after"]), head.get("write", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"{guid}: its message is none of ours: {error!r}; who else writes to the streams records-*?") from None

# SPDX-License-Identifier: Apache-2.0
"""The changes of a journal in memory, built from its lines.

A change has one line when it begins, and one with the result. Each line contains the hash of the previous line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

NOTHING = "0" * 64
"""The hash before the first line."""
INTERRUPTED = "interrupted: the file was not changed"
"""The result of a change whose process ended before it replaced the file."""


class JournalError(Exception):
    """The journal cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change."""

    name: str
    origin: str
    """The origin of the change: `file`, `command`, or the address of an API client."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A change in the journal."""

    number: int
    time: str
    """ISO 8601, UTC."""
    author: str
    origin: str
    verb: str
    arguments: Mapping[str, Any]
    before: str | None
    """SHA-256 of the configuration before the change; None for the first entry."""
    after: str
    idempotency_key: str | None
    request_id: str | None
    """The correlation id of the request; None for entries of earlier versions."""
    result: str | None
    """`installed`, `written` (no controller was running), or an error. None if it is not known yet."""
    missing: tuple[str, ...]
    """The switches that were unreachable."""


_BEGUN = tuple(name for name in Entry.__slots__ if name not in ("result", "missing"))


def digest(text: str) -> str:
    """Return the SHA-256 of a configuration, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> str:
    """Return the time as ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def operation_id(idempotency_key: str) -> str:
    """Return the id of the operation with a key, which is the same on all controllers."""
    return hashlib.sha256(idempotency_key.encode()).hexdigest()[:16]


def line_hash(line: Mapping[str, Any]) -> str:
    """Return the hash that the field `hash` of a line must have."""
    content = {key: value for key, value in line.items() if key != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def encode(line: Mapping[str, Any]) -> bytes:
    """Return a line as it is stored, without a line break."""
    return json.dumps(line, sort_keys=True).encode()


def decode(data: bytes) -> dict[str, Any]:
    """Return a stored line. Raises ValueError."""
    found = json.loads(data)
    if not isinstance(found, dict) or not isinstance(found.get("number"), int):
        raise ValueError("not a line of a journal")
    return found


class History:
    """The changes so far."""

    def __init__(self) -> None:
        self.lines = 0
        """The number of lines."""
        self.head = NOTHING
        """The hash of the last line."""
        self._entries: dict[int, Entry] = {}
        self._by_key: dict[str, Entry] = {}
        self._by_operation: dict[str, Entry] = {}
        self._unfinished: set[int] = set()

    def follows(self, line: Mapping[str, Any]) -> bool:
        """Return whether a line is unaltered and the next one in the chain."""
        return line.get("previous") == self.head and line.get("hash") == line_hash(line)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add the next line. Lines that are not about known changes only extend the chain."""
        number = int(line["number"])
        if "verb" in line:
            fields = {name: line.get(name) for name in _BEGUN}
            self._put(Entry(**fields, result=None, missing=()))  # type: ignore[arg-type]
        elif "result" in line and number in self._entries:
            self._put(replace(self._entries[number], result=line["result"], missing=tuple(line.get("missing", ()))))
        self.lines += 1
        self.head = str(line.get("hash"))

    def _put(self, entry: Entry) -> None:
        self._entries[entry.number] = entry
        if entry.idempotency_key is not None:
            self._by_key[entry.idempotency_key] = entry
            self._by_operation[operation_id(entry.idempotency_key)] = entry
        if entry.result is None:
            self._unfinished.add(entry.number)
        else:
            self._unfinished.discard(entry.number)

    def entries(self) -> list[Entry]:
        """Return the changes, the oldest first."""
        return list(self._entries.values())

    def find(self, number: int) -> Entry | None:
        """Return a change, or None if it does not exist."""
        return self._entries.get(number)

    def by_key(self, idempotency_key: str) -> Entry | None:
        """Return the change with an idempotency key, or None if it does not exist."""
        return self._by_key.get(idempotency_key)

    def by_operation(self, identifier: str) -> Entry | None:
        """Return the change of an operation, or None if it does not exist."""
        return self._by_operation.get(identifier)

    def unfinished(self) -> list[Entry]:
        """Return the changes without a result, the oldest first."""
        return [self._entries[number] for number in sorted(self._unfinished)]

    def last(self) -> Entry | None:
        """Return the newest change."""
        return next(reversed(self._entries.values()), None)

    def next_number(self) -> int:
        """Return the number of the next change."""
        last = self.last()
        return 1 if last is None else last.number + 1

    def made(self) -> Entry | None:
        """Return the newest change that was not interrupted, or else the first one: its `after` is the configuration."""
        made = (entry for entry in reversed(self._entries.values()) if entry.result != INTERRUPTED)
        return next(made, next(iter(self._entries.values()), None))

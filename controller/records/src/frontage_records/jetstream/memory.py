# SPDX-License-Identifier: Apache-2.0
"""The writes that a record's log remembers, so that a repeated write takes effect once and returns its first result.

Each message of a log contains the results of the last writes, because other memory may be lost between a write and its answer. A killed
record server loses its own, and a record that moves leaves the deduplication of its stream.

A server states with each write which of its earlier writes it may still repeat. The log forgets the results of the others, but it keeps
`Operation.oldest`, so that it ignores a late attempt of a forgotten write. If the memory is full, the log also forgets writes that may
still be repeated. It then keeps the version of the last one, and each writer names a version from before its first attempt
(`Operation.after`). If the forgotten write is not later, all writes since are remembered, so a write that is not among them has not been
done. Clocks play no part in this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frontage_records.record import Record, Write, Written

MAX_DONE = 128
"""Maximum number of results that a log remembers."""
MAX_ORIGINS = 16
"""Maximum number of servers whose writes a log remembers."""


class ForgottenError(Exception):
    """The log has forgotten writes since `Operation.after`, so it does not know whether this one is done. Nothing has been done now."""

    def __init__(self, version: int):
        """``version``: the present version of the record."""
        super().__init__(version)
        self.version = version


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a write."""

    origin: str
    number: int
    version: int
    """The record's version after the write."""
    stamp: int


@dataclass(frozen=True, slots=True)
class Origin:
    """A server that has written the record."""

    name: str
    oldest: int
    """Number of the oldest write that it may repeat."""
    version: int
    """The record's version after its last write."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The remembered writes of a record."""

    done: tuple[Done, ...] = ()
    """By version."""
    origins: tuple[Origin, ...] = ()
    """By version."""
    forgotten: int = 0
    """Version of the last write that was forgotten although it may be repeated; 0 without one."""

    def with_(self, write: Write, record: Record) -> Memory:
        """Return the memory after a write. ``record``: the state after it."""
        operation = write.operation
        if operation is None:
            return self
        name, oldest, forgotten = operation.origin, max(operation.oldest, self._oldest(operation.origin)), self.forgotten
        done = [one for one in self.done if one.origin != name or one.number >= oldest]
        done.append(Done(name, operation.number, record.version, record.stamp))
        origins = [one for one in self.origins if one.name != name]
        origins.append(Origin(name, oldest, record.version))
        if len(done) > MAX_DONE:
            forgotten = max(forgotten, done.pop(0).version)
        if len(origins) > MAX_ORIGINS:
            forgotten = max(forgotten, origins.pop(0).version)
        return Memory(tuple(done), tuple(origins), forgotten)

    def result(self, write: Write, record: Record | None) -> Written | None:
        """Return the first result of a write if it is done already; None if it is not. ``record``: the present state.

        The result of an update of a counter, set or map is the present state, which contains the update. Raises ForgottenError.
        """
        operation = write.operation
        if operation is None or record is None:
            return None
        for one in self.done:
            if (one.origin, one.number) != (operation.origin, operation.number):
                continue
            if record.consistency.merge is None:
                record = Record(write.guid, record.consistency, one.version, one.stamp, write.document)
            return Written(record, applied=True)
        if operation.number < self._oldest(operation.origin) or self.forgotten > operation.after:
            raise ForgottenError(record.version)
        return None

    def _oldest(self, origin: str) -> int:
        return next((one.oldest for one in self.origins if one.name == origin), 0)

    def header(self) -> dict[str, Any]:
        """Return the memory as a part of a message's header."""
        if not self.origins:
            return {}
        return {
            "done": [[one.origin, one.number, one.version, one.stamp] for one in self.done],
            "origins": [[one.name, one.oldest, one.version] for one in self.origins],
            "forgotten": self.forgotten,
        }


EMPTY = Memory()


def memory_of(head: Mapping[str, Any]) -> Memory:
    """Return the memory from a message's header. Raises KeyError, TypeError, ValueError."""
    if "origins" not in head:
        return EMPTY
    done = tuple(Done(str(name), int(number), int(version), int(stamp)) for name, number, version, stamp in head["done"])
    origins = tuple(Origin(str(name), int(oldest), int(version)) for name, oldest, version in head["origins"])
    return Memory(done, origins, int(head["forgotten"]))

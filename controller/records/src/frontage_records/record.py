# SPDX-License-Identifier: Apache-2.0
"""Records, and the effect of a write: the semantics that all engines share.

``eventual``: the write with the latest client stamp wins (Auspice, section 1.2.3, "single-writer" clause). ``total-writes``: writes
are totally ordered and numbered. ``total``: reads are part of that order too, which the engine ensures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from time import time_ns
from typing import Any, TypeAlias

from frontage_records.document import decode
from frontage_records.errors import ConsistencyError, NoOrderError, NotFoundError, StampError, VersionError

Clock: TypeAlias = Callable[[], int]
"""Microseconds since the Unix epoch."""


def now_us() -> int:
    """Return the current time in microseconds since the Unix epoch."""
    return time_ns() // 1000


class Consistency(StrEnum):
    """The consistency model of a record."""

    EVENTUAL = "eventual"
    TOTAL_WRITES = "total-writes"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Record:
    """One state of a record. A deletion is a state too, so that late writes do not restore the record."""

    guid: str
    consistency: Consistency
    version: int
    """Number of the record's last write, from 1; of an eventual record, its stamp."""
    stamp: int
    """Microseconds since the Unix epoch, by the writer's clock."""
    document: bytes | None
    """The encoded document; None if deleted."""

    @property
    def value(self) -> dict[str, Any] | None:
        """The decoded document; None if deleted."""
        return None if self.document is None else decode(self.document)

    @property
    def order(self) -> tuple[int, bool, bytes]:
        """Sort key of a record's states; the later state has the greater key.

        Among eventual writes with equal stamps, a deletion is later than a document, and documents are ordered by their bytes. So
        all replicas agree, in whatever order they receive the writes.
        """
        return self.version, self.document is None, self.document or b""


@dataclass(frozen=True, slots=True)
class Write:
    """A put or a deletion, checked as far as possible without the record."""

    guid: str
    document: bytes | None
    consistency: Consistency | None = None
    """None: that of the record, or ``eventual`` for a new one."""
    stamp: int | None = None
    """None: the server's clock, and later than the present state."""
    if_version: int | None = None
    """Write only if the record has this version; 0: only if the record does not exist."""


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write."""

    record: Record
    """The record's state after the write."""
    applied: bool
    """False if a write with a later stamp was there already, and stays."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits. ``max_bytes``: size of an encoded document. ``max_ahead``: microseconds a stamp may be ahead of the server's clock."""

    max_bytes: int = 65536
    max_ahead: int = 5_000_000


DEFAULT_BOUNDS = Bounds()


def check_stamp(stamp: int, now: int, bounds: Bounds) -> None:
    """Check a stamp. Raises StampError.

    A stamp far in the future would win over all writes until that time. An old stamp does no harm: its write loses.
    """
    if stamp < 0:
        raise StampError(f"the stamp {stamp} is before 1970: give microseconds since the Unix epoch")
    if stamp > now + bounds.max_ahead:
        ahead = (stamp - now) / 1e6
        raise StampError(
            f"the stamp {stamp} is {ahead:.1f} s ahead of this server's clock, but at most {bounds.max_ahead / 1e6:g} s is accepted: "
            "set the client's clock, or give microseconds since the Unix epoch"
        )


def apply(current: Record | None, write: Write, now: int, bounds: Bounds) -> Written:
    """Return the record after ``write`` at Unix time ``now`` in microseconds.

    Raises StampError, ConsistencyError, NoOrderError, VersionError, NotFoundError (nothing to delete).
    """
    if write.stamp is not None:
        check_stamp(write.stamp, now, bounds)
    if current is None:
        if write.document is None:
            raise NotFoundError(f"no such record: {write.guid}")
        consistency = write.consistency or Consistency.EVENTUAL
    else:
        consistency = current.consistency
        if write.consistency not in (None, consistency):
            raise ConsistencyError(
                f"{write.guid}: the consistency is {consistency} and cannot change: omit it, or use another GUID"
            )
    if consistency is Consistency.EVENTUAL:
        return _last_writer(current, write, now)
    return _next(current, write, consistency, now)


def _last_writer(current: Record | None, write: Write, now: int) -> Written:
    if write.if_version is not None:
        raise NoOrderError(f"{write.guid}: an eventual record has no versions to compare: create it as total-writes or total")
    stamp = write.stamp
    if stamp is None:
        stamp = now if current is None else max(now, current.stamp + 1)
    record = Record(write.guid, Consistency.EVENTUAL, stamp, stamp, write.document)
    if current is not None and record.order <= current.order:
        # A repetition of the same write counts as applied.
        return Written(current, applied=record.order == current.order)
    return Written(record, applied=True)


def _next(current: Record | None, write: Write, consistency: Consistency, now: int) -> Written:
    present = 0 if current is None or current.document is None else current.version
    if write.if_version not in (None, present):
        have = f"the record has version {present}" if present else "the record does not exist"
        raise VersionError(f"{write.guid}: {have}, expected version {write.if_version}: read it again")
    if write.document is None and not present:
        raise NotFoundError(f"no such record: {write.guid}")
    version = 1 if current is None else current.version + 1
    return Written(
        Record(write.guid, consistency, version, now if write.stamp is None else write.stamp, write.document), applied=True
    )

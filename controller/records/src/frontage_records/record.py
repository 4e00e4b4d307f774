# SPDX-License-Identifier: Apache-2.0
"""Records, and the effect of a write: the semantics that all engines share.

``eventual``: the write with the latest client stamp wins (Auspice, section 1.2.3, "single-writer" clause). ``counter``, ``set`` and
``map`` are eventual too, but concurrent updates are merged. ``total-writes``: writes are totally ordered and numbered. ``total``: reads
are part of that order too, which the engine ensures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from time import time_ns
from typing import Any, TypeAlias

from frontage_records import merges
from frontage_records.document import decode
from frontage_records.errors import ConsistencyError, MergeError, NoOrderError, NotFoundError, SizeError, StampError, VersionError
from frontage_records.merges import Delta, Merge

Clock: TypeAlias = Callable[[], int]
"""Microseconds since the Unix epoch."""


def now_us() -> int:
    """Return the current time in microseconds since the Unix epoch."""
    return time_ns() // 1000


class Consistency(StrEnum):
    """The consistency model of a record."""

    EVENTUAL = "eventual"
    COUNTER = "counter"
    SET = "set"
    MAP = "map"
    TOTAL_WRITES = "total-writes"
    TOTAL = "total"

    @property
    def merge(self) -> Merge | None:
        """How concurrent updates are merged; None if a write replaces the document."""
        return Merge(self) if self in (Consistency.COUNTER, Consistency.SET, Consistency.MAP) else None

    @property
    def is_ordered(self) -> bool:
        """True if writes are totally ordered, so that a site that is cut off from the others cannot accept any."""
        return self in (Consistency.TOTAL_WRITES, Consistency.TOTAL)


REPLACED = (Consistency.EVENTUAL, Consistency.TOTAL_WRITES, Consistency.TOTAL)
"""The models in which a write replaces the document."""


@dataclass(frozen=True, slots=True)
class Record:
    """One state of a record. A deletion is a state too, so that late writes do not restore the record."""

    guid: str
    consistency: Consistency
    version: int
    """Number of the record's last write, from 1; of an ``eventual`` record, its stamp; of a merged one, its number of updates."""
    stamp: int
    """Microseconds since the Unix epoch, by the writer's clock."""
    document: bytes | None
    """The encoded document, or the encoded state of a merged record; None if deleted."""

    @property
    def value(self) -> dict[str, Any] | None:
        """The decoded document; None if deleted."""
        if self.document is None:
            return None
        merge = self.consistency.merge
        return decode(self.document) if merge is None else merges.value(merge, merges.decode(self.document))

    @property
    def order(self) -> tuple[int, bool, bytes]:
        """Sort key of a record's states; the later state has the greater key.

        Among eventual writes with equal stamps, a deletion is later than a document, and documents are ordered by their bytes. So
        all replicas agree, in whatever order they receive the writes.
        """
        return self.version, self.document is None, self.document or b""


@dataclass(frozen=True, slots=True)
class Operation:
    """The identity of a write that may be repeated: ``origin`` and ``number``, which are the same in all attempts."""

    origin: str
    """The server that repeats the write."""
    number: int
    """Increases with each write of the origin."""
    oldest: int
    """Number of the origin's oldest write to this record that was in progress when this one began. It repeats no older ones."""
    after: int
    """A version that the record had before the first attempt; 0 if unknown."""


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
    update: Mapping[str, Any] | Delta | None = None
    """An update of a merged record: a client's changes (`merges.check_changes`), or the updates that another site has accepted. An
    update has no ``document``."""
    is_forwarded: bool = False
    """True if another site has accepted the write before, and has checked it."""
    operation: Operation | None = None
    """None for a write that is idempotent by itself, or that is never repeated."""

    @property
    def deletes(self) -> bool:
        """True for a deletion."""
        return self.document is None and self.update is None


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

    Raises StampError, ConsistencyError, NoOrderError, VersionError, NotFoundError (nothing to delete or to update), MergeError (put
    of a merged record, or update of another one), DocumentError, SizeError.
    """
    if write.stamp is not None and not write.is_forwarded:
        check_stamp(write.stamp, now, bounds)
    if current is None:
        if write.deletes or (write.update is not None and write.consistency is None):
            raise NotFoundError(f"no such record: {write.guid}")
        consistency = write.consistency or Consistency.EVENTUAL
    else:
        consistency = current.consistency
        if write.consistency not in (None, consistency):
            raise ConsistencyError(
                f"{write.guid}: the consistency is {consistency} and cannot change: omit it, or use another GUID"
            )
    if (consistency.merge is None) != (write.update is None) and not write.deletes:
        raise MergeError(_how_to_write(write.guid, consistency))
    if consistency.merge is not None:
        return _merged(current, write, consistency, consistency.merge, now, bounds)
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


def _how_to_write(guid: str, consistency: Consistency) -> str:
    if consistency.merge is None:
        return f"{guid}: a record with consistency {consistency} can only be replaced: use PUT, or create a counter, set or map"
    return f"{guid}: a {consistency} cannot be replaced: use PATCH with the changes"


def _merged(current: Record | None, write: Write, consistency: Consistency, merge: Merge, now: int, bounds: Bounds) -> Written:
    if write.if_version is not None:
        raise NoOrderError(f"{write.guid}: a {consistency} has no versions to compare: create the record as total-writes or total")
    version, stamp = (0, now) if current is None else (current.version, max(now, current.stamp + 1))
    is_deleted = current is not None and current.document is None
    if write.update is None:
        if is_deleted:
            raise NotFoundError(f"no such record: {write.guid}")
        return Written(Record(write.guid, consistency, version + 1, stamp, None), applied=True)
    if current is not None and is_deleted and (isinstance(write.update, Delta) or write.consistency is None):
        # A deletion wins over updates that other sites have accepted.
        if isinstance(write.update, Delta):
            return Written(current, applied=False)
        raise NotFoundError(f"no such record: {write.guid}")
    state = merges.empty() if current is None or current.document is None else merges.decode(current.document)
    if isinstance(write.update, Delta):
        delta = write.update
    else:
        begun = Delta(merges.LOG, merges.seen(state, merges.LOG)[0] + 1)
        delta = merges.extend(merge, state, begun, merges.check_changes(merge, write.update), stamp)
    record = after_delta(write.guid, consistency, current, delta)
    if not write.is_forwarded and len(record.document or b"") > bounds.max_bytes:
        raise SizeError(f"{write.guid}: the {consistency} would have more than {bounds.max_bytes} bytes: use several records")
    return Written(record, applied=True)


def after_delta(guid: str, consistency: Consistency, current: Record | None, delta: Delta) -> Record:
    """Return a merged record with the updates of ``delta`` that it does not contain yet."""
    merge = consistency.merge
    assert merge is not None
    state = merges.empty() if current is None or current.document is None else merges.decode(current.document)
    new = merges.unseen(state, delta)
    if current is not None and not new:
        return current
    version, stamp = (new, delta.stamp) if current is None else (current.version + new, max(current.stamp, delta.stamp))
    return Record(guid, consistency, version, stamp, merges.encode(merges.absorb(merge, state, delta)))


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

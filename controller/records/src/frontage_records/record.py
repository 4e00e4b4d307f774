"""A record, and what one write makes of it: the semantics that every engine has, in one place.

``eventual``: the last write by the clients' time stamps wins (Auspice, section 1.2.3, "single-writer" clause). ``total-writes``:
writes have one order, and are numbered in it. ``total``: reads have their places in that order too, which is the engine's part.
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
    return time_ns() // 1000


class Consistency(StrEnum):
    EVENTUAL = "eventual"
    TOTAL_WRITES = "total-writes"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Record:
    """One state of a record. A deleted one keeps its place in the order, so that late writes do not bring it back."""

    guid: str
    consistency: Consistency
    version: int
    """Number of the write among the record's, from 1; of an eventual record the stamp."""
    stamp: int
    """Microseconds since the Unix epoch, by the writer's clock."""
    document: bytes | None
    """None: deleted."""

    @property
    def value(self) -> dict[str, Any] | None:
        return None if self.document is None else decode(self.document)

    @property
    def order(self) -> tuple[int, bool, bytes]:
        """Of two states of a record the later has the greater. Eventual writes of equal stamps: a deletion is the later, and of two
        documents the greater by its bytes; so all replicas agree, whatever they saw first."""
        return self.version, self.document is None, self.document or b""


@dataclass(frozen=True, slots=True)
class Write:
    """A put or a deletion, checked as far as it can be without the record."""

    guid: str
    document: bytes | None
    consistency: Consistency | None = None
    """None: as the record has it, or ``eventual``."""
    stamp: int | None = None
    """None: by the server's clock, and later than what is there."""
    if_version: int | None = None
    """Only if the record has this version; 0: only if there is none."""


@dataclass(frozen=True, slots=True)
class Written:
    record: Record
    """As it is now."""
    applied: bool
    """False: a write with a later stamp was there already, and stays."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """``max_bytes`` of a document as encoded; ``max_ahead``: microseconds that a stamp may be ahead of the server's clock."""

    max_bytes: int = 65536
    max_ahead: int = 5_000_000


DEFAULT_BOUNDS = Bounds()


def check_stamp(stamp: int, now: int, bounds: Bounds) -> None:
    """Raises StampError. A stamp far ahead would win over all writes until that time comes; one far behind only loses."""
    if stamp < 0:
        raise StampError(f"the stamp {stamp} is before 1970; give microseconds since the Unix epoch")
    if stamp > now + bounds.max_ahead:
        ahead = (stamp - now) / 1e6
        raise StampError(
            f"the stamp {stamp} is {ahead:.1f} s ahead of this server's clock, at most {bounds.max_ahead / 1e6:g} s is taken; "
            "set the client's clock, or give microseconds since the Unix epoch"
        )


def apply(current: Record | None, write: Write, now: int, bounds: Bounds) -> Written:
    """What ``write`` makes of the record, at Unix time ``now`` in microseconds.

    Raises StampError, ConsistencyError, NoOrderError, VersionError, NotFoundError (nothing to delete).
    """
    if write.stamp is not None:
        check_stamp(write.stamp, now, bounds)
    if current is None:
        if write.document is None:
            raise NotFoundError(f"there is no record {write.guid}")
        consistency = write.consistency or Consistency.EVENTUAL
    else:
        consistency = current.consistency
        if write.consistency not in (None, consistency):
            raise ConsistencyError(
                f"{write.guid} is {consistency}, which stays so; leave the consistency out, or take another GUID"
            )
    if consistency is Consistency.EVENTUAL:
        return _last_writer(current, write, now)
    return _next(current, write, consistency, now)


def _last_writer(current: Record | None, write: Write, now: int) -> Written:
    if write.if_version is not None:
        raise NoOrderError(
            f"{write.guid} is eventual: its writes have no order to compare versions in; make it total-writes or total"
        )
    stamp = write.stamp
    if stamp is None:
        stamp = now if current is None else max(now, current.stamp + 1)
    record = Record(write.guid, Consistency.EVENTUAL, stamp, stamp, write.document)
    if current is not None and record.order <= current.order:
        # The very same write again is done, not beaten.
        return Written(current, applied=record.order == current.order)
    return Written(record, applied=True)


def _next(current: Record | None, write: Write, consistency: Consistency, now: int) -> Written:
    present = 0 if current is None or current.document is None else current.version
    if write.if_version not in (None, present):
        have = f"version {present}" if present else "not there"
        raise VersionError(f"{write.guid} is {have}, not version {write.if_version}; read it again")
    if write.document is None and not present:
        raise NotFoundError(f"there is no record {write.guid}")
    version = 1 if current is None else current.version + 1
    return Written(
        Record(write.guid, consistency, version, now if write.stamp is None else write.stamp, write.document), applied=True
    )

# SPDX-License-Identifier: Apache-2.0
"""Histories of concurrent operations on one record, and whether some order of them explains what each has returned.

The search is Wing and Gong's (JPDC 1993), remembering where it has been as Lowe does (2017): an operation may come next if it began
before any that is left has ended. The register's values are versions with their documents, so a wrong order shows soon.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest

from frontage_records.errors import ContentionError, EngineError, OutcomeUnknownError, RecordError
from frontage_records.record import Consistency
from frontage_records.store import Store

State: TypeAlias = tuple[int, str | None]
"""The version and the value; None: not written yet, or deleted."""

NEVER = 1 << 62
T = TypeVar("T")
BUILT = Path(__file__).parents[3] / "build" / "porcupine"
PORCUPINE = os.environ.get("PORCUPINE") or (str(BUILT) if BUILT.exists() else None)


@dataclass(slots=True)
class Operation:
    """One operation. If its outcome is unknown, ``end`` is NEVER, without a ``result``."""

    kind: str
    """``read``, ``put``, ``delete``, or ``refused``: a put or deletion whose version differs from the present one."""
    written: str | None
    if_version: int | None
    begin: int
    end: int = NEVER
    result: State | None = None

    def after(self, state: State) -> State | None:
        """Return the state after the operation; None if it is impossible in this state."""
        version, value = state
        present = version if value is not None else 0
        met = self.if_version is None or self.if_version == present
        if self.kind == "read":
            return state if self.result == (present, value) else None
        if self.kind == "refused":
            return None if met else state
        if not met or (self.kind == "delete" and not present):
            return None
        done = version + 1, self.written
        return done if self.result is None or self.result == done else None


@dataclass
class History:
    """The history of one record. Starts and ends are numbered in order of occurrence, without a clock."""

    operations: list[Operation] = field(default_factory=list)
    _moments: count[int] = field(default_factory=count)

    def begin(self, kind: str, written: str | None = None, if_version: int | None = None) -> Operation:
        operation = Operation(kind, written, if_version, next(self._moments))
        self.operations.append(operation)
        return operation

    def end(self, operation: Operation, result: State | None, kind: str | None = None) -> None:
        operation.end, operation.result, operation.kind = next(self._moments), result, kind or operation.kind

    def drop(self, operation: Operation) -> None:
        """Remove an operation that was certainly not done."""
        self.operations.remove(operation)


def linearizable(operations: Sequence[Operation], start: State = (0, None)) -> bool:
    """Return whether a total order of the operations, consistent with their starts and ends, explains all results."""
    return unexplained(operations, start) is None


def unexplained(operations: Sequence[Operation], start: State = (0, None)) -> str | None:
    """Search for an order that makes the operations `linearizable`. Return None, or text on where the search ended."""
    # A read with unknown outcome constrains nothing.
    todo = sorted((one for one in operations if one.end != NEVER or one.kind != "read"), key=lambda one: one.begin)
    required = sum(1 << i for i, one in enumerate(todo) if one.end != NEVER)
    seen: set[tuple[int, State]] = set()
    furthest = 0, start
    stack = [furthest]
    while stack:
        done, state = stack.pop()
        if done & required == required:
            return None
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if done.bit_count() > furthest[0].bit_count():
            furthest = done, state
        for bit, one in _next(todo, done):
            after = one.after(state)
            if after is not None:
                stack.append((done | bit, after))
    done, state = furthest
    candidates = "".join(f"\n  {one}" for _, one in _next(todo, done))
    around = "".join(f"\n  {one}" for one in todo if one.result is not None and abs(one.result[0] - state[0]) <= 2)
    return (
        f"after {done.bit_count()} of {len(todo)} operations, the state is {state}, and none of these can be next:{candidates}\n"
        f"Operations with results near this state:{around}"
    )


def _next(todo: Sequence[Operation], done: int) -> list[tuple[int, Operation]]:
    """Yield operations that began before any remaining one ended, with their bits. ``todo`` is sorted by start."""
    left, first_end = ~done & (1 << len(todo)) - 1, NEVER
    found = []
    while left:
        bit = left & -left
        one = todo[bit.bit_length() - 1]
        if one.begin > first_end:
            break
        found.append((bit, one))
        first_end = min(first_end, one.end)
        left ^= bit
    return [(bit, one) for bit, one in found if one.begin < first_end]


def porcupines(histories: Sequence[Sequence[Operation]]) -> list[bool]:
    """Check many histories with Porcupine (tools/porcupine). Skips if it is not built."""
    if PORCUPINE is None:
        pytest.skip("no porcupine: make build/porcupine, or its path in PORCUPINE")
    plain = [[asdict(one) | {"end": one.end if one.end != NEVER else None} for one in history] for history in histories]
    done = subprocess.run([PORCUPINE], input=json.dumps(plain), capture_output=True, text=True, check=True)
    found: list[bool] = json.loads(done.stdout)
    return found


def totally_written(operations: Sequence[Operation]) -> bool:
    """Return whether writes have one order, and no read returns a state from its future (total-writes)."""
    writes = [one for one in operations if one.kind != "read"]
    if not linearizable(writes):
        return False
    known = {one.result for one in writes if one.result is not None and one.kind == "put"}
    unknown = {one.written: one for one in writes if one.result is None}
    begun = {one.written: one.begin for one in writes}
    for one in operations:
        if one.kind != "read" or one.result is None or one.result[1] is None:
            continue
        value = one.result[1]
        if one.result not in known and value not in unknown:
            return False
        if begun[value] > one.end:
            return False
    return True


async def write_until(
    done: asyncio.Event, store: Store, history: History, by: object, guid: str = "guid", wrote: Callable[[], object] = lambda: None
) -> None:
    """Put ``{"v": "BY.N"}`` for N = 1, 2, ..., in spite of failures. ``wrote`` is called after each acknowledged write."""
    n = 0
    while not done.is_set():
        n += 1
        value = f"{by}.{n}"
        operation = history.begin("put", value)
        try:
            written = await store.put(guid, {"v": value}, consistency=Consistency.TOTAL)
        except OutcomeUnknownError:
            continue
        except (EngineError, ContentionError):
            history.drop(operation)
            continue
        history.end(operation, (written.record.version, value))
        wrote()


async def read_by(store: Store, history: History, guid: str = "guid") -> None:
    """Read the record, and add the read to the history."""

    async def read() -> None:
        operation = history.begin("read")
        try:
            record = await store.get(guid)
        except RecordError:
            history.drop(operation)
            raise
        assert record.value is not None
        history.end(operation, (record.version, record.value["v"]))

    await eventually(read)


async def eventually(operation: Callable[[], Awaitable[T]]) -> T:
    """Repeat an idempotent operation while the engine is unavailable, for example on a busy machine without a leader."""
    while True:
        try:
            return await operation()
        except (EngineError, ContentionError, OutcomeUnknownError):
            await asyncio.sleep(0.1)

# SPDX-License-Identifier: Apache-2.0
"""Changes in progress. Clients can wait for them, query their progress, and retry a request without repeating the change."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from frontage.api.problems import UnprocessableError
from frontage.changes.history import Author, Entry, now, operation_id
from frontage.changes.verbs import Change
from frontage.service.changes import INSTALLED, WRITTEN, Changes, Check, Done

KEPT = 1000
"""The number of operations that clients can look up."""


@dataclass(slots=True)
class Operation:
    """A change in progress or made."""

    id: str
    verb: str
    arguments: dict[str, Any]
    task: asyncio.Task[Done] | None = None
    """None for an operation of an earlier controller."""
    started: str = field(default_factory=now)
    error: str | None = None
    done: Done | None = None

    @property
    def state(self) -> str:
        """`running`, `succeeded` or `failed`."""
        if self.done is not None:
            return "succeeded"
        return "running" if self.error is None else "failed"


class Operations:
    """The operations of one backend."""

    def __init__(self, changes: Changes, on_change: Callable[[Operation], None]):
        """``on_change`` is called when an operation begins and ends."""
        self._changes = changes
        self._on_change = on_change
        self._known: dict[str, Operation] = {}
        self._by_key: dict[str, Operation] = {}

    def submit(
        self, change: Change, author: Author, *, check: Check | None = None, idempotency_key: str | None = None
    ) -> Operation:
        """Begin a change, or return the operation with the same key. Raises UnprocessableError if that is a different change."""
        if idempotency_key is not None:
            known = self._earlier(idempotency_key)
            if known is not None:
                if (known.verb, known.arguments) != (change.verb, change.arguments):
                    raise UnprocessableError(
                        f'the idempotency key "{idempotency_key}" belongs to a different change: use a new key'
                    )
                return known
        identifier = secrets.token_hex(8) if idempotency_key is None else operation_id(idempotency_key)
        making = self._changes.make(change, author, check=check, idempotency_key=idempotency_key)
        return self._begin(Operation(identifier, change.verb, dict(change.arguments)), making, idempotency_key)

    def _earlier(self, idempotency_key: str) -> Operation | None:
        """Return the operation of an earlier request with the same key, unless it failed and changed nothing."""
        known = self._by_key.get(idempotency_key)
        if known is not None and known.state != "failed":
            return known
        entry = self._changes.journal.history().by_key(idempotency_key)
        return known if known is not None and entry is not None else self._recover(entry)

    def find(self, identifier: str) -> Operation | None:
        """Return an operation, also of an earlier controller if its request had an idempotency key."""
        if (known := self._known.get(identifier)) is not None:
            return known
        return self._recover(self._changes.journal.history().by_operation(identifier))

    def all(self) -> list[Operation]:
        """Return the last operations, the oldest first."""
        return list(self._known.values())

    def _begin(self, operation: Operation, making: Coroutine[Any, Any, Done], idempotency_key: str | None) -> Operation:
        operation.task = asyncio.create_task(making)
        self._keep(operation, idempotency_key)
        self._on_change(operation)
        operation.task.add_done_callback(lambda task: self._end(operation, task))
        return operation

    def _keep(self, operation: Operation, idempotency_key: str | None) -> None:
        self._known[operation.id] = operation
        if idempotency_key is not None:
            self._by_key[idempotency_key] = operation
        for kept in (self._known, self._by_key):
            while len(kept) > KEPT:
                del kept[next(iter(kept))]

    def _end(self, operation: Operation, task: asyncio.Task[Done]) -> None:
        if task.cancelled():
            operation.error = "the controller has stopped"
        elif (error := task.exception()) is not None:
            operation.error = str(error)
        else:
            operation.done = task.result()
        self._on_change(operation)

    def _recover(self, entry: Entry | None) -> Operation | None:
        """Return the operation of an earlier controller."""
        if entry is None:
            return None
        identifier = f"change-{entry.number}" if entry.idempotency_key is None else operation_id(entry.idempotency_key)
        operation = Operation(identifier, entry.verb, dict(entry.arguments), started=entry.time)
        if entry.result in (INSTALLED, WRITTEN):
            operation.done = Done(entry.number, entry.verb, entry.result == INSTALLED, entry.missing)
        elif entry.result is None and self._changes.are_completed:
            return self._begin(operation, self._changes.completed(entry.number), entry.idempotency_key)
        else:
            operation.error = entry.result or "the controller stopped before the change was installed"
        return operation

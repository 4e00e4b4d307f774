# SPDX-License-Identifier: Apache-2.0
"""Repeats writes whose outcome is unknown. The record's log recognizes a repetition (`memory`), so no write takes effect twice."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from secrets import token_urlsafe

from frontage_records.errors import ContentionError, EngineError, OutcomeUnknownError, RecordError, VersionError
from frontage_records.jetstream.connection import OPERATION_TIMEOUT
from frontage_records.jetstream.memory import ForgottenError
from frontage_records.record import Operation, Write, Written

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
"""Seconds before a write is repeated: initial and maximum value."""
_MAX_KNOWN = 100_000
"""Records whose last known version is kept."""


class Repetition:
    """Runs the writes of one server."""

    def __init__(self, attempt: Callable[[Write], Awaitable[Written]]):
        """``attempt`` tries to write once, and may raise ForgottenError."""
        self._attempt = attempt
        self._known: OrderedDict[str, int] = OrderedDict()
        """Last known versions by GUID, the oldest first."""
        self._origin = token_urlsafe(6)
        self._numbers = count(1)
        self._in_progress: dict[str, dict[int, None]] = {}
        """The numbers of the writes in progress by GUID, the oldest first."""
        self._is_closed = False

    def close(self) -> None:
        """Let no write be repeated any more."""
        self._is_closed = True

    def learn(self, guid: str, version: int) -> None:
        """Note a version that the record has or had."""
        self._known[guid] = version
        self._known.move_to_end(guid)
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)

    async def write(self, write: Write) -> Written:
        """Write, repeatedly for `OPERATION_TIMEOUT` while the outcome is unknown.

        Raises the errors of the write, and OutcomeUnknownError if no repetition was answered, or if the log has forgotten the write.
        """
        number = next(self._numbers)
        in_progress = self._in_progress.setdefault(write.guid, {})
        in_progress[number] = None
        operation = Operation(self._origin, number, next(iter(in_progress)), self._known.get(write.guid, 0))
        try:
            return await self._repeat(replace(write, operation=operation))
        finally:
            del in_progress[number]
            if not in_progress:
                del self._in_progress[write.guid]

    async def _repeat(self, write: Write) -> Written:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + OPERATION_TIMEOUT, _FIRST_PAUSE
        doubt: OutcomeUnknownError | None = None
        while True:
            try:
                written = await self._attempt(write)
            except ForgottenError as error:
                if doubt is not None:
                    raise doubt from None
                if loop.time() > deadline:
                    raise ContentionError(f"{write.guid}: too many concurrent writes: try again") from None
                # No attempt has done anything, so the present version is from before the first effective attempt.
                write = _after(write, error.version)
                continue
            except OutcomeUnknownError as error:
                doubt = error
            except (EngineError, ContentionError):
                if doubt is None:
                    raise
            except RecordError as error:
                if doubt is None or _is_final(error, write):
                    raise
                # An earlier attempt may still be in progress, and succeed.
                raise doubt from None
            else:
                self.learn(write.guid, written.record.version)
                return written
            if self._is_closed or loop.time() + pause > deadline:
                raise doubt
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _after(write: Write, version: int) -> Write:
    assert write.operation is not None
    return replace(write, operation=replace(write.operation, after=version))


def _is_final(error: RecordError, write: Write) -> bool:
    """Return whether a refusal holds for all attempts: a version that is gone never comes back."""
    return isinstance(error, VersionError) and bool(write.if_version)

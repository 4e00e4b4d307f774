# SPDX-License-Identifier: Apache-2.0
"""Makes changes: edits the configuration file, records the changes in the journal, and waits for their installation."""

from __future__ import annotations

import asyncio
import itertools
import logging
import pwd
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontage.changes.history import INTERRUPTED, Author, Entry, JournalError, digest
from frontage.changes.journal import Beginning, Result
from frontage.changes.verbs import Change
from frontage.config import ConfigError, loads
from frontage.config.edit import EditError
from frontage.observe import causes, tracing
from frontage.observe.causes import Cause
from frontage.observe.logs import fields
from frontage.store.interface import FileStore, Store

log = logging.getLogger(__name__)

WRITTEN = "written"
"""The result of a change that was made while no controller was running."""
INSTALLED = "installed"

GATHER_TIMEOUT = 1.0
"""Seconds that an installation waits for further changes that can share it."""
MAX_TOGETHER = 64
"""Maximum number of waiting changes that are checked and written to the file together."""
COMPLETION_TIMEOUT = 75.0
"""Seconds that a repeated request waits for the change that a previous leader began."""
_POLL_INTERVAL = 0.05

Check = Callable[[str], None]
"""Raises an error if a change must not be made to this configuration."""


class NotInstalledError(Exception):
    """The file contains the change, but the switches do not; the message says why."""


@dataclass(frozen=True, slots=True)
class Done:
    """A change that has been made."""

    number: int | None
    """Its number in the journal; None if the file did not have to change."""
    changed: str
    is_installed: bool
    """False if no controller is running."""
    missing: tuple[str, ...] = ()
    """The unreachable switches, which get the change later."""


class _Waiting:
    """A change that is waiting to be written."""

    def __init__(self, change: Change, author: Author, check: Check | None, idempotency_key: str | None):
        self.change, self.author, self.check, self.idempotency_key = change, author, check, idempotency_key
        self.request_id = causes.request_id()
        self.number: int | None = None
        """Its number in the journal; None if the file did not have to change."""
        self.error: Exception | None = None
        self.is_done = False

    def edited(self, text: str) -> str:
        """Return the configuration after the change. Raises the errors of its check and its edit."""
        if self.check is not None:
            self.check(text)
        return self.change.edit(text)


class _Installations:
    """Installations of the file, one after the other. Concurrent requests share an installation."""

    def __init__(self, install: Callable[[], Coroutine[Any, Any, list[str] | None]], more: Callable[[], bool]):
        """While ``more`` is true, further changes are about to be made, and an installation waits for some of them."""
        self._install = install
        self._more = more
        self._cause: Cause | None = None
        self._next: asyncio.Task[list[str] | None] | None = None
        """The installation that has not begun yet."""
        self._running = asyncio.Lock()

    async def wait(self) -> list[str] | None:
        """Return the result of an installation that begins after this call. Raises NotInstalledError."""
        if self._next is None:
            self._cause = causes.current()
            self._next = asyncio.create_task(self._run())
        elif self._cause is not None and self._cause != causes.current():
            log.info("sharing the installation of request %s", self._cause.request_id)
        task = self._next
        await asyncio.wait({task})
        return task.result()

    async def _run(self) -> list[str] | None:
        async with self._running:
            deadline = time.monotonic() + GATHER_TIMEOUT
            while self._more() and time.monotonic() < deadline:
                await asyncio.sleep(_POLL_INTERVAL)
            self._next = None
            return await self._install()


class Changes:
    """Changes of one configuration.

    ``install`` reads and installs the file and returns the switches that were unreachable, or None if no controller is running. It
    may raise NotInstalledError.
    """

    def __init__(self, file: Path, install: Callable[[], Coroutine[Any, Any, list[str] | None]], store: Store | None = None):
        """``store`` contains the configuration and the journal; the default is ``file`` and the journal next to it."""
        self.file = file
        self.store: Store = store or FileStore(file)
        self.journal = self.store.journal
        self._installations = _Installations(install, lambda: self._writing.locked())
        self._writing = asyncio.Lock()
        self._waiting: list[_Waiting] = []
        """The changes that are not yet written, in their order."""
        self._unfinished = 0
        """The number of changes that are not yet installed."""
        self._results: list[Result] = []
        """Results that are not yet in the journal."""
        self._recording: asyncio.Task[None] | None = None
        self.cause: Cause | None = None
        """The cause of the last change of the file by this process; None once it is installed."""
        self._valid: str | None = None
        """The hash of a configuration that is known to be valid."""

    async def make(self, change: Change, author: Author, *, check: Check | None = None, idempotency_key: str | None = None) -> Done:
        """Make a change, and wait until it is installed.

        Raises ConfigError, EditError, JournalError and the errors of ``check``, and then changes nothing. Raises NotInstalledError.
        """
        self._unfinished += 1
        try:
            return await self._make(change, author, check, idempotency_key)
        finally:
            self._unfinished -= 1
            if self.cause is causes.current():
                self.cause = None

    async def _make(self, change: Change, author: Author, check: Check | None, idempotency_key: str | None) -> Done:
        number = await self._write_in_turn(change, author, check, idempotency_key)
        try:
            missing = await self.installed()
        except NotInstalledError as error:
            await self._finish(number, f"not installed: {error}")
            raise
        await self._finish(number, WRITTEN if missing is None else INSTALLED, tuple(missing or ()))
        return Done(number, change.done, missing is not None, tuple(missing or ()))

    async def _write_in_turn(self, change: Change, author: Author, check: Check | None, idempotency_key: str | None) -> int | None:
        waiting = _Waiting(change, author, check, idempotency_key)
        self._waiting.append(waiting)
        try:
            with tracing.span("journal", verb=change.verb) as span:
                async with self._writing:
                    if not waiting.is_done:
                        await asyncio.to_thread(self._write, self._next_waiting())
                span.set(change=waiting.number)
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
        if waiting.error is not None:
            raise waiting.error
        known = fields(change=waiting.number, verb=change.verb, author=author.name, origin=author.origin)
        log.info("%s by %s", change.verb, author.name, extra=known)
        return waiting.number

    def _next_waiting(self) -> list[_Waiting]:
        """Return the next changes to write together: several edits, or one replacement.

        In a shared store, each line of the journal determines a configuration, so each change is written separately.
        """
        count = 1
        if isinstance(self.store, FileStore) and not self._waiting[0].change.replaces:
            edits = itertools.takewhile(lambda one: not one.change.replaces, self._waiting[:MAX_TOGETHER])
            count = sum(1 for _ in edits)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    @property
    def are_pending(self) -> bool:
        """True if changes are in progress, which install the configuration themselves."""
        return self._unfinished > 0

    @property
    def are_completed(self) -> bool:
        """True if the next leader completes changes that a controller leaves without a result."""
        return not isinstance(self.store, FileStore)

    async def completed(self, number: int) -> Done:
        """Wait until the leader has completed a change that another controller began. Raises NotInstalledError."""
        try:
            async with asyncio.timeout(COMPLETION_TIMEOUT):
                while (entry := self.journal.find(number)) is None or entry.result is None:
                    await asyncio.sleep(_POLL_INTERVAL)
        except TimeoutError:
            raise NotInstalledError(
                f"change {number} has no result after {COMPLETION_TIMEOUT:g} s: see `frontage status`"
            ) from None
        if entry.result not in (INSTALLED, WRITTEN):
            raise NotInstalledError(entry.result)
        return Done(number, entry.verb, entry.result == INSTALLED, entry.missing)

    async def installed(self) -> list[str] | None:
        """Read the file, wait until it is installed, and return the switches that were unreachable.

        Returns None if no controller is running. Raises NotInstalledError.
        """
        return await self._installations.wait()

    def read(self) -> str:
        """Return the text of the configuration. Raises EditError."""
        return self.store.read()

    def _write(self, changes: Sequence[_Waiting]) -> None:
        """Make the changes in one edit of the file. Each gets its number or its error."""
        for one in changes:
            one.number = one.error = None
        try:
            self._write_together(changes)
        except ConfigError as error:
            if len(changes) > 1:
                # At least one change makes the configuration invalid: try them one by one.
                for one in changes:
                    self._write([one])
            else:
                changes[0].error = changes[0].error or error
        except Exception as error:
            for one in changes:
                one.error = one.error or error
        for one in changes:
            one.is_done = True

    def _write_together(self, changes: Sequence[_Waiting]) -> None:
        """Raise ConfigError if the result is invalid, and EditError and JournalError. Then nothing is changed."""
        steps: list[tuple[_Waiting, str, str]] = []

        def edit(text: str) -> str:
            if not changes[0].change.replaces and digest(text) != self._valid:
                loads(text, self.file)
            for one in changes:
                try:
                    after = one.edited(text)
                except Exception as error:
                    one.error = error
                else:
                    steps.append((one, text, after))
                    text = after
            if not steps and changes[-1].error is not None:
                raise changes[-1].error
            return text

        def record(before: str, after: str) -> None:
            self._note(before)
            real = [(one, old, new) for one, old, new in steps if old != new]
            if real:
                numbers = self.journal.begin(
                    *(Beginning(one.change, one.author, old, new, one.idempotency_key, one.request_id) for one, old, new in real)
                )
                for (one, _, _), number in zip(real, numbers, strict=True):
                    one.number = number
                self.cause = causes.current()
            self._valid = digest(after)

        self.store.change(edit, record)

    async def _finish(self, number: int | None, result: str, missing: tuple[str, ...] = ()) -> None:
        if number is None:
            return
        # Changes that shared an installation share a write to the journal.
        self._results.append((number, result, missing))
        if self._recording is None:
            self._recording = asyncio.create_task(self._record())
        await asyncio.wait({self._recording})

    async def _record(self) -> None:
        await asyncio.sleep(0)
        results, self._results, self._recording = self._results, [], None
        try:
            await asyncio.to_thread(self.finish, results)
        except JournalError as error:
            log.error("%s", error)

    def finish(self, results: Sequence[Result]) -> None:
        """Record the results of changes. Raises JournalError."""
        try:
            with self.store.locked():
                self.journal.finish(results)
        except OSError as error:
            raise JournalError(f"{self.file}: cannot be locked: {error}") from None

    def note(self) -> int | None:
        """Record a change that somebody made in a text editor. Return its number, or None if the file has not changed.

        Raises JournalError.
        """
        try:
            with self.store.locked():
                return self._note(self.store.read())
        except (OSError, EditError) as error:
            raise JournalError(str(error)) from None

    def _note(self, text: str) -> int | None:
        history = self.journal.history()
        last = history.last()
        if last is None:
            return self._begin(Change("start", {}, "", str), None, text)
        if last.result is None and (interrupted := _interrupted(history.unfinished(), digest(text))):
            self.journal.finish([(entry.number, INTERRUPTED, ()) for entry in interrupted])
            return None
        made = history.made()
        if made is None or made.after == digest(text):
            return None
        try:
            before = self.journal.text(made.after)
        except JournalError:
            before = None
        return self._begin(Change("edit", {}, "", str), before, text)

    def _begin(self, change: Change, before: str | None, after: str) -> int:
        """Record a change of the file's owner, and return its number. Raises JournalError."""
        (number,) = self.journal.begin(Beginning(change, self._owner(), before, after, request_id=causes.request_id()))
        return number

    def _owner(self) -> Author:
        """Return the owner of the file, because the editor's user is unknown."""
        return Author(user_name(self.file.stat().st_uid), "file")


def _interrupted(unfinished: Sequence[Entry], present: str) -> list[Entry]:
    """Return the last changes, recorded together, if the file still has the configuration before the first of them."""
    found: list[Entry] = []
    for entry in reversed(unfinished):
        if found and entry.after != found[-1].before:
            return []
        found.append(entry)
        if entry.before == present != found[0].after:
            return found[::-1]
    return []


def user_name(uid: int) -> str:
    """Return the name of a user, or the uid if the name is unknown."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def describe(entry: Entry) -> Mapping[str, object]:
    """Return a change of the journal as JSON values."""
    return {name: getattr(entry, name) for name in Entry.__slots__}

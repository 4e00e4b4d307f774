# SPDX-License-Identifier: Apache-2.0
"""The journal in NATS JetStream, which several controllers share, and the store around it.

The last change in the journal determines the configuration, so a change is committed when its line is appended. NATS appends a line
only if it follows the last one. Each new leader first appends its own line, so that lines which a previous leader is still sending
no longer follow.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from frontage.changes.history import History, JournalError, decode, digest, encode, now
from frontage.changes.journal import Beginning, ChangeJournal, Result, chained, last_line
from frontage.config import loads
from frontage.config.document import parse
from frontage.config.edit import Edit, EditError, Record, read_file
from frontage.config.key_file import OWNER_ONLY, replace
from frontage.config.schema import Config
from frontage.store.connection import Connection
from frontage.store.errors import OvertakenError, StoreError

log = logging.getLogger(__name__)

_AHEAD = 64
"""The number of lines that are read concurrently."""
_SECRET = "secret."

T = TypeVar("T")


class SharedJournal(ChangeJournal):
    """The journal in JetStream. Only the leader writes; all controllers have its lines in memory."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.may_write: Callable[[], bool] = lambda: False
        """Returns true while this controller is the leader."""
        self.on_append: Callable[[], Awaitable[None]] | None = None
        """Called after this controller has appended a line."""
        self._history = History()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._texts: dict[str, str] = {}
        """The last configurations, by hash."""
        self._appending = asyncio.Lock()

    def open(self, connection: Connection) -> None:
        """Use a connection."""
        self.connection, self._loop = connection, asyncio.get_running_loop()

    async def follow(self) -> bool:
        """Read the new lines of the store, and return whether there were any. Raises StoreError and JournalError."""
        async with self._appending:
            return await self._follow()

    async def _follow(self) -> bool:
        connection = self._connected()
        last, first = await connection.lines(), self._history.lines
        while self._history.lines < last:
            numbers = range(self._history.lines + 1, min(last, self._history.lines + _AHEAD) + 1)
            for data in await asyncio.gather(*map(connection.line, numbers)):
                self._add(data)
        return self._history.lines > first

    async def read(self) -> AsyncIterator[dict[str, Any]]:
        """Yield all current lines of the store. Raises StoreError and JournalError."""
        for number in range(1, await self._connected().lines() + 1):
            yield self._add(await self._connected().line(number))

    async def lead(self, name: str, term: int) -> None:
        """Read all lines, and append one about the new leader. Raises StoreError, JournalError and OvertakenError."""
        async with self._appending:
            await self._follow()
            last = self._history.last()
            line = {"number": 0 if last is None else last.number, "time": now(), "leader": name, "term": term}
            await self._append(line)

    def begin(self, *beginnings: Beginning) -> list[int]:
        return [self.wait(self._begin(one)) for one in beginnings]

    def finish(self, results: Sequence[Result]) -> None:
        self.wait(self._finish(results))

    def text(self, sha256: str) -> str:
        return self._texts.get(sha256) or self.wait(self.fetch(sha256))

    def verify(self) -> int:
        """Return the number of lines. The chain has been checked when they were read."""
        return self._history.lines

    def history(self) -> History:
        return self._history

    async def put_secret(self, key_id: int, secret: str) -> None:
        """Store the secret of a cookie key. Raises StoreError."""
        await self._connected().put(f"{_SECRET}{key_id}", secret.encode())

    async def secret(self, key_id: int) -> str | None:
        """Return the secret of a cookie key, or None if the store does not have it. Raises StoreError."""
        found = await self._connected().get(f"{_SECRET}{key_id}")
        return None if found is None else found[0].decode()

    async def fetch(self, sha256: str) -> str:
        """Return a configuration by its hash. Raises JournalError and StoreError."""
        if (known := self._texts.get(sha256)) is not None:
            return known
        found = await self._connected().text(sha256)
        if found is None:
            raise JournalError("the journal does not keep this old configuration any more: undo a later change")
        if digest(found) != sha256:
            raise JournalError(f"the store's configuration {sha256} has been altered: restore the store from a backup")
        self._remember(found)
        return found

    async def _begin(self, beginning: Beginning) -> int:
        async with self._appending:
            for text in (beginning.before, beginning.after):
                if text is not None:
                    await self._connected().put_text(digest(text), text)
                    self._remember(text)
            number = self._history.next_number()
            await self._append(beginning.line(number))
            return number

    async def _finish(self, results: Sequence[Result]) -> None:
        async with self._appending:
            for number, result, missing in results:
                found = self._history.find(number)
                if found is not None and found.result is None:
                    await self._append(last_line(number, result, missing))

    async def _append(self, line: dict[str, Any]) -> None:
        if not self.may_write():
            raise StoreError("this controller is not the leader: repeat the request")
        line = chained(line, self._history.head)
        try:
            await self._connected().append(encode(line), self._history.lines + 1, line["hash"])
        except OvertakenError:
            await self._follow()
            raise
        self._history.add(line)
        if self.on_append is not None:
            await self.on_append()

    def _add(self, data: bytes | None) -> dict[str, Any]:
        number = self._history.lines + 1
        try:
            line = decode(data or b"")
        except ValueError:
            raise JournalError(f"line {number} of the store's journal is malformed: restore a backup") from None
        if not self._history.follows(line):
            raise JournalError(f"line {number} of the store's journal, or the one before it, has been altered: restore a backup")
        self._history.add(line)
        return line

    def _remember(self, text: str) -> None:
        self._texts[digest(text)] = text
        while len(self._texts) > 4:
            del self._texts[next(iter(self._texts))]

    def _connected(self) -> Connection:
        if self.connection is None:
            raise StoreError("not connected to the store yet: see `frontage status`")
        return self.connection

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop, from another thread. Converts the store's errors into JournalError."""
        if self._loop is None:
            call.close()
            raise JournalError("nothing was changed: not connected to the store yet: see `frontage status`")
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop).result()
        except OvertakenError:
            raise JournalError("nothing was changed: another controller has made a change first: repeat the request") from None
        except StoreError as error:
            raise JournalError(f"{error}; `frontage history` shows whether the change was made") from None


class SharedStore:
    """The configuration that the journal determines, with a copy in a file."""

    def __init__(self, file: Path, bucket: str):
        self.file = file
        self.journal = SharedJournal()
        self._bucket = bucket
        self._writing = threading.Lock()
        """Held while the copy is written."""
        self._adopted: str | None = None
        """The hash of the configuration whose secrets this controller has."""

    def read(self) -> str:
        made = self.journal.history().made()
        return self.copy() if made is None else self.journal.text(made.after)

    def copy(self) -> str:
        """Return the text of this controller's copy. Raises EditError."""
        return read_file(self.file)

    def change(self, edit: Edit, record: Record) -> None:
        before = self.read()
        after = edit(before)
        config = loads(after, self.file)
        if config.store is None or config.store.nats.bucket != self._bucket:
            raise EditError(
                f"store.nats.bucket is {self._bucket} in the running controllers: use `frontage migrate` to change the store"
            )
        self.keep_secrets(config)
        with self._writing:
            record(before, after)
            try:
                replace(self.file, after)
            except OSError as error:
                what = f"the change was made, but {self.file} cannot be written: {error}: make the folder writable"
                raise JournalError(what) from None

    def keep_secrets(self, config: Config) -> None:
        """Store the secrets of keys that have files, for the other controllers. Raises JournalError."""
        for key in config.keys:
            if key.secret_file is not None:
                secret = next(one.secret for one in config.cookie_keys if one.id == key.id)
                self.journal.wait(self.journal.put_secret(key.id, secret.hex()))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Do nothing: NATS rejects the lines of other writers, because they do not follow the last line."""
        yield

    async def adopt(self) -> bool:
        """Write the configuration to this controller's copy, with the secrets of its keys, and return whether the copy has changed.

        If somebody has edited the copy, the edited version is saved in another file. Raises StoreError, JournalError and EditError.
        """
        made = self.journal.history().made()
        if made is None or (made.after == self._adopted and await asyncio.to_thread(self._is_copy_of, made.after)):
            return False
        text = await self.journal.fetch(made.after)
        for number, file in secret_files(text).items():
            await asyncio.to_thread(_write_secret, self.file.resolve().parent / file, await self.journal.secret(number))
        return await asyncio.to_thread(self._write_copy, text)

    def _is_copy_of(self, sha256: str) -> bool:
        return self.file.exists() and digest(self.copy()) == sha256

    def _write_copy(self, text: str) -> bool:
        with self._writing:
            history = self.journal.history()
            made = history.made()
            if made is None or made.after != digest(text):
                return False  # a later change has written the copy
            self._adopted = made.after
            if self._is_copy_of(made.after):
                return False
            if self.file.exists() and digest(edited := self.copy()) not in {entry.after for entry in history.entries()}:
                kept = self.file.with_name(f".{self.file.name}.rejected")
                what = "%s was edited, but the store determines the configuration: the edit was moved to %s: use `frontage apply`"
                log.error(what, self.file, kept)
                replace(kept, edited, OWNER_ONLY)
            replace(self.file, text)
            return True


def secret_files(text: str) -> dict[int, Path]:
    """Return the secret files of a configuration's keys, by key id."""
    data = parse(text).data
    keys = data.get("keys", []) if isinstance(data, dict) else []
    found = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
    return {int(str(key["id"])): Path(str(key["secret_file"])) for key in found if "secret_file" in key}


def _write_secret(file: Path, secret: str | None) -> None:
    """Write a secret to its file, if the store has the secret and the file differs."""
    if secret is not None and not (file.exists() and file.read_text(encoding="ascii").strip() == secret):
        replace(file, secret + "\n", OWNER_ONLY)

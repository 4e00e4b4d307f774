# SPDX-License-Identifier: Apache-2.0
"""The engine for one machine: SQLite. A single thread runs all transactions; their order gives all consistency models."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

from frontage_records.errors import EngineError, RecordError, SiteError
from frontage_records.record import DEFAULT_BOUNDS, Bounds, Clock, Consistency, Record, Write, Written, apply, now_us
from frontage_records.store import Store

APPLICATION_ID = 0x46525244
"""SQLite application id ("FRRD"), which distinguishes the file from other databases."""
SCHEMA = 1
_TABLE = """
CREATE TABLE record (
    guid TEXT PRIMARY KEY, consistency TEXT NOT NULL, version INTEGER NOT NULL, stamp INTEGER NOT NULL, document BLOB
) STRICT, WITHOUT ROWID
"""
_BATCH = 512
"""Most operations in one transaction, which share the latency of the disk."""

Operation: TypeAlias = Callable[[sqlite3.Connection], Any]
_Pending: TypeAlias = "tuple[Operation, asyncio.Future[Any]]"
Outcome: TypeAlias = "tuple[asyncio.Future[Any], Any, Exception | None]"


def create(file: Path) -> None:
    """Create an empty store. Raises EngineError, also if the file exists."""
    try:
        # Exclusively, so that an existing store is never emptied.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise EngineError(f"{file}: exists already: remove it, or give another path") from None
    except OSError as error:
        raise EngineError(f"{file}: cannot be created: {error.strerror}: make the folder writable") from None
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.execute(_TABLE)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise EngineError(f"{file}: cannot be created: {error}") from None
    finally:
        connection.close()


class Embedded(Store):
    """A store in one file, used by one process. Create it with `open`."""

    def __init__(
        self, connection: sqlite3.Connection, file: Path, site: int, bounds: Bounds, clock: Clock, worker: ThreadPoolExecutor
    ):
        super().__init__(bounds, clock)
        self.file = file
        self.site = site
        self._connection = connection
        self._identity = _identity(file)
        self._worker = worker
        self._waiting: list[_Pending] = []
        self._running: asyncio.Future[None] | None = None
        self._closed = False

    @classmethod
    async def open(cls, file: Path, site: int = 1, bounds: Bounds = DEFAULT_BOUNDS, clock: Clock = now_us) -> Embedded:
        """Open the store. ``site``: the id of its only site. Raises EngineError."""
        worker = ThreadPoolExecutor(1, thread_name_prefix="records")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(worker, _open, file)
            return cls(connection, file, site, bounds, clock, worker)
        except BaseException:
            worker.shutdown(wait=False)
            raise

    async def sites(self, guid: str) -> tuple[int, ...]:
        await self.get(guid)
        return (self.site,)

    async def place(self, guid: str, sites: Collection[int]) -> None:
        if list(sites) != [self.site]:
            raise SiteError(f"this engine keeps records at site {self.site} only: for several sites, use JetStream (records.store)")
        await self.get(guid)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await super().close()
        while self._running is not None:
            await self._running
        await asyncio.get_running_loop().run_in_executor(self._worker, self._connection.close)
        self._worker.shutdown()

    async def _read(self, guid: str) -> Record | None:
        found: Record | None = await self._do(lambda connection: _select(connection, guid))
        return found

    async def _write(self, write: Write) -> Written:
        def operation(connection: sqlite3.Connection) -> Written:
            current = _select(connection, write.guid)
            written = apply(current, write, self.clock(), self.bounds)
            if written.record is not current:
                _replace(connection, written.record)
            return written

        written: Written = await self._do(operation)
        return written

    async def _do(self, operation: Operation) -> Any:
        """Run an operation on the thread. Operations that arrive while it is busy share the next transaction."""
        if self._closed:
            raise EngineError(f"{self.file}: the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((operation, future))
        if self._running is None:
            self._running = asyncio.ensure_future(self._drain())
        # Cancellation of the caller does not cancel the operation.
        return await asyncio.shield(future)

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            for future, result, error in await loop.run_in_executor(self._worker, self._transaction, batch):
                if error is not None:
                    future.set_exception(error)
                    # Mark it as retrieved: the caller may have been cancelled.
                    future.exception()
                    continue
                future.set_result(result)
                if isinstance(result, Written):
                    self._watches.offer(result.record)
        self._running = None

    def _transaction(self, batch: list[_Pending]) -> list[Outcome]:
        """Run a batch in one transaction, on the thread.

        Results are returned once they are on disk; if that fails, all operations have failed.
        """
        outcomes: list[Outcome] = []
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for operation, future in batch:
                try:
                    outcomes.append((future, operation(connection), None))
                except RecordError as error:
                    outcomes.append((future, None, error))
            if _identity(self.file) != self._identity:
                raise EngineError(f"{self.file}: was removed or replaced while in use: restore it and restart; nothing was written")
            connection.execute("COMMIT")
        except Exception as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = EngineError(f"{self.file}: {error}") if isinstance(error, sqlite3.Error | OSError | ValueError) else error
            outcomes = [(future, None, failure) for _, future in batch]
        return outcomes


def _open(file: Path) -> sqlite3.Connection:
    if not file.is_file():
        fix = "restore it, or create an empty one with `frontage records create`"
        raise EngineError(f"{file}: no such store: {fix}")
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=1.0)
    try:
        # Hold the lock until close: subscribers would miss the writes of another process.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise EngineError(f"{file}: not a record store: give the path of one, or create one with `frontage records create`")
        if schema != SCHEMA:
            raise EngineError(f"{file}: schema {schema}, but this program has schema {SCHEMA}: use the program that created it")
        connection.execute("PRAGMA journal_mode = WAL")
        # A commit that has returned survives a crash of the machine.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        connection.execute("COMMIT")
        if found != "ok":
            raise EngineError(f"{file}: is damaged: {found}: restore it from a backup")
    except sqlite3.OperationalError as error:
        connection.close()
        locked = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
        fix = "stop the other server that has it open" if locked else "make it and its folder writable"
        raise EngineError(f"{file}: {error}: {fix}") from None
    except sqlite3.DatabaseError as error:
        connection.close()
        raise EngineError(f"{file}: is damaged: {error}: restore it from a backup") from None
    except EngineError:
        connection.close()
        raise
    return connection


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _select(connection: sqlite3.Connection, guid: str) -> Record | None:
    query = "SELECT consistency, version, stamp, document FROM record WHERE guid = ?"
    found = connection.execute(query, (guid,)).fetchone()
    if found is None:
        return None
    consistency, version, stamp, document = found
    return Record(guid, Consistency(consistency), version, stamp, document)


def _replace(connection: sqlite3.Connection, record: Record) -> None:
    values = record.guid, record.consistency.value, record.version, record.stamp, record.document
    connection.execute("REPLACE INTO record (guid, consistency, version, stamp, document) VALUES (?, ?, ?, ?, ?)", values)

# SPDX-License-Identifier: Apache-2.0
"""The places in which a configuration and its journal can be stored. Reads snapshots from them, and restores snapshots."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from frontage.api.client import is_listening
from frontage.changes.history import Author, JournalError, encode
from frontage.changes.journal import Beginning, Journal, chained, last_line
from frontage.changes.verbs import Change
from frontage.config import load, loads
from frontage.config.edit import locked
from frontage.config.key_file import OWNER_ONLY, replace
from frontage.config.store import NatsStore
from frontage.discovery.service import state_file
from frontage.observe import causes
from frontage.store import lease
from frontage.store.connection import Connection
from frontage.store.errors import OvertakenError, StoreError
from frontage.store.journal import SharedJournal, secret_files
from frontage.store.snapshot import Snapshot, SnapshotError

MIGRATED = "migrated"
"""The result of the change that records a migration in the journal."""
_ALLOCATIONS = "allocations"


class Place(Protocol):
    """A place for a configuration and its journal."""

    async def read(self) -> Snapshot:
        """Return a consistent snapshot. Raises SnapshotError."""
        ...

    async def require_idle(self) -> None:
        """Raise SnapshotError if a controller uses the place."""
        ...

    async def restore(self, snapshot: Snapshot) -> None:
        """Write a snapshot, or complete an interrupted restoration. Raises SnapshotError if another journal is there."""
        ...


def place_of(file: Path, text: str) -> Place:
    """Return the place that the text of a configuration specifies. ``file`` is the configuration file. Raises ConfigError."""
    config = loads(text, file)
    return FilePlace(file) if config.store is None else NatsPlace(file, config.store.nats)


class FilePlace:
    """The configuration file, and the journal next to it."""

    def __init__(self, file: Path):
        self.file = file

    async def require_idle(self) -> None:
        path = self.file.resolve().with_name(f".{self.file.name}.sock")
        if self.file.exists():
            path = load(self.file).control_socket or path
        if is_listening(path):
            raise SnapshotError(f"a controller is running with {self.file}: stop it first")

    async def read(self) -> Snapshot:
        journal = Journal(self.file)
        try:
            with locked(self.file.resolve()):
                lines, history = journal.lines(), journal.history()
                text = self.file.read_text(encoding="utf-8")
                texts = _texts(history.entries(), journal.text)
        except (OSError, UnicodeDecodeError, JournalError) as error:
            raise SnapshotError(f"{self.file}: cannot be read: {error}") from None
        snapshot = Snapshot(lines, texts, _read_json(state_file(self.file)), _read_secrets(self.file, text))
        if snapshot.configuration != text:
            raise SnapshotError(f"{self.file} has changes that are not in its journal: run `frontage up` to record them")
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        journal = Journal(self.file)
        text = snapshot.configuration
        try:
            with locked(self.file.resolve()):
                done = journal.lines()
                _check_rest(done, snapshot, str(journal.folder))
                if self.file.exists() and self.file.read_text(encoding="utf-8") != text:
                    raise SnapshotError(f"{self.file} contains a different configuration: move it away, or use a new file")
                write_secrets(self.file, text, snapshot.secrets)
                journal.restore(snapshot.texts, snapshot.lines[len(done) :])
                if snapshot.allocations:
                    replace(state_file(self.file), json.dumps(snapshot.allocations, indent=1) + "\n")
                replace(self.file, text)
        except (OSError, UnicodeDecodeError, JournalError) as error:
            raise SnapshotError(f"{self.file}: cannot be written: {error}: make the folder writable") from None


class NatsPlace:
    """A bucket in NATS JetStream, with a copy of the configuration in a file."""

    def __init__(self, file: Path, settings: NatsStore):
        self.file = file
        self._settings = settings

    async def require_idle(self) -> None:
        try:
            connection = await Connection.open(self._settings)
            try:
                before = await connection.get(lease.KEY)
                await asyncio.sleep(lease.renewal_interval(self._settings.lease) * 2)
                if await connection.get(lease.KEY) != before:
                    raise SnapshotError(f"a controller is using the bucket {self._settings.bucket}: stop all controllers first")
            finally:
                await connection.close()
        except StoreError as error:
            raise SnapshotError(str(error)) from None

    async def read(self) -> Snapshot:
        try:
            connection = await Connection.open(self._settings)
            try:
                return await _read_bucket(connection)
            finally:
                await connection.close()
        except (StoreError, JournalError) as error:
            raise SnapshotError(str(error)) from None

    async def restore(self, snapshot: Snapshot) -> None:
        text = snapshot.configuration
        try:
            connection = await Connection.open(self._settings)
            try:
                await _restore_bucket(connection, snapshot)
            finally:
                await connection.close()
            write_secrets(self.file, text, snapshot.secrets)
            replace(self.file, text)
        except (StoreError, JournalError, OSError) as error:
            raise SnapshotError(str(error)) from None
        except OvertakenError:
            raise SnapshotError(f"a controller is using the bucket {self._settings.bucket}: stop all controllers first") from None


def moved(snapshot: Snapshot, text: str, author: Author) -> Snapshot:
    """Return the snapshot with ``text``, which specifies another place, as its configuration."""
    history = snapshot.history()
    before = snapshot.configuration
    if before == text:
        return snapshot
    change = Change("migrate", {}, "", str)
    begin = chained(
        Beginning(change, author, before, text, request_id=causes.request_id()).line(history.next_number()), history.head
    )
    end = chained(last_line(begin["number"], MIGRATED, ()), begin["hash"])
    return Snapshot([*snapshot.lines, begin, end], {**snapshot.texts, begin["after"]: text}, snapshot.allocations, snapshot.secrets)


async def _read_bucket(connection: Connection) -> Snapshot:
    journal = SharedJournal()
    journal.open(connection)
    lines = [line async for line in journal.read()]
    texts: dict[str, str] = {}
    for entry in journal.history().entries():
        for sha256 in (entry.before, entry.after):
            if sha256 is not None and sha256 not in texts and (text := await connection.text(sha256)) is not None:
                texts[sha256] = text
    found = await connection.get(_ALLOCATIONS)
    snapshot = Snapshot(lines, texts, {} if found is None else json.loads(found[0]))
    secrets = {str(number): await journal.secret(number) for number in secret_files(snapshot.configuration)}
    return Snapshot(
        lines, texts, snapshot.allocations, {number: secret for number, secret in secrets.items() if secret is not None}
    )


async def _restore_bucket(connection: Connection, snapshot: Snapshot) -> None:
    """Write a snapshot. A bucket with the first lines of its journal gets the rest. Raises OvertakenError."""
    journal = SharedJournal()
    journal.open(connection)
    done = [line async for line in journal.read()]
    _check_rest(done, snapshot, f"the bucket {connection.bucket}")
    for sha256, text in snapshot.texts.items():
        await connection.put_text(sha256, text)
    for key_id, secret in snapshot.secrets.items():
        await journal.put_secret(int(key_id), secret)
    if snapshot.allocations:
        await connection.put(_ALLOCATIONS, json.dumps(snapshot.allocations).encode())
    for number, line in enumerate(snapshot.lines[len(done) :], start=len(done) + 1):
        await connection.append(encode(line), number, line["hash"])


def _check_rest(done: list[dict[str, Any]], snapshot: Snapshot, where: str) -> None:
    if [line["hash"] for line in done] != [line["hash"] for line in snapshot.lines[: len(done)]]:
        raise SnapshotError(f"{where} contains another journal: restore to an empty location, or remove that journal")


def _texts(entries: Any, read: Any) -> dict[str, str]:
    """Return the configurations that the journal still has."""
    texts: dict[str, str] = {}
    for sha256 in {one for entry in entries for one in (entry.before, entry.after) if one is not None}:
        try:
            texts[sha256] = read(sha256)
        except JournalError:
            continue
    return texts


def _read_json(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SnapshotError(f"{file}: cannot be read: {error}") from None


def _read_secrets(file: Path, text: str) -> dict[str, str]:
    folder = file.resolve().parent
    try:
        return {str(number): (folder / path).read_text(encoding="ascii").strip() for number, path in secret_files(text).items()}
    except (OSError, UnicodeDecodeError) as error:
        raise SnapshotError(f"the secret of a key cannot be read: {error}") from None


def write_secrets(file: Path, text: str, secrets: Mapping[str, str]) -> None:
    """Write the secret files that the snapshot contains. Raises SnapshotError if a file is neither there nor in the snapshot."""
    folder = file.resolve().parent
    for number, path in secret_files(text).items():
        if (secret := secrets.get(str(number))) is not None:
            replace(folder / path, secret + "\n", OWNER_ONLY)
        elif not (folder / path).exists():
            raise SnapshotError(f"the backup does not contain {path}, the secret of key {number}: copy that file first")

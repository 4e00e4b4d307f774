# SPDX-License-Identifier: Apache-2.0
"""The journal: who changed the configuration, when, from where, and with which result.

The journal is a folder next to the configuration file, accessible to the file's owner only:

    .NAME.journal/log                one JSON object per line; lines are only appended
    .NAME.journal/texts/SHA256.yaml  the configurations before and after the changes

Each line contains the hash of the previous line, so an altered or removed line is detected unless all later lines are rewritten,
too. A change has one line before the file is replaced, and one with the result.

`ChangeJournal` is the common base of this journal and the one in NATS (`frontage.store.journal`).
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontage.changes.history import Author, Entry, History, JournalError, decode, digest, encode, line_hash, now
from frontage.changes.verbs import Change
from frontage.config.key_file import OWNER_ONLY, replace

KEPT_TEXTS = 2000
"""The number of configurations that the journal keeps. Changes before the oldest one cannot be undone."""


Result = tuple[int, str, tuple[str, ...]]
"""The number of a change, its result, and the switches that were unreachable."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A change that is about to be made."""

    change: Change
    author: Author
    before: str | None
    """The configuration before the change; None for the first one."""
    after: str
    idempotency_key: str | None = None
    request_id: str | None = None

    def line(self, number: int) -> dict[str, Any]:
        """Return the line of the change, without its hashes."""
        return {
            "number": number,
            "time": now(),
            "author": self.author.name,
            "origin": self.author.origin,
            "verb": self.change.verb,
            "arguments": dict(self.change.arguments),
            "before": None if self.before is None else digest(self.before),
            "after": digest(self.after),
            "idempotency_key": self.idempotency_key,
            "request_id": self.request_id,
        }


class ChangeJournal(ABC):
    """A journal of changes. Its methods block, so call them in threads; only `begin` and `finish` write."""

    @abstractmethod
    def history(self) -> History:
        """Return all changes. Raises JournalError."""

    @abstractmethod
    def begin(self, *beginnings: Beginning) -> list[int]:
        """Record changes that are about to be made, one after the other, and return their numbers. Raises JournalError."""

    @abstractmethod
    def finish(self, results: Sequence[Result]) -> None:
        """Record the results of changes. Raises JournalError."""

    @abstractmethod
    def text(self, sha256: str) -> str:
        """Return a configuration by its hash. Raises JournalError."""

    @abstractmethod
    def verify(self) -> int:
        """Verify the hash chain, and return the number of lines. Raises JournalError at the first line that breaks the chain."""

    def entries(self) -> list[Entry]:
        """Return the changes, the oldest first. Raises JournalError."""
        return self.history().entries()

    def entry(self, number: int) -> Entry:
        """Return a change. Raises JournalError if it does not exist."""
        found = self.find(number)
        if found is None:
            last = self.last()
            numbers = f"1 to {last.number}" if last is not None else "none"
            raise JournalError(f"unknown change {number} (the journal has {numbers}): see `frontage history`")
        return found

    def find(self, number: int) -> Entry | None:
        """Return a change, or None if it does not exist. Raises JournalError."""
        return self.history().find(number)

    def last(self) -> Entry | None:
        """Return the newest change. Raises JournalError."""
        return self.history().last()


def last_line(number: int, result: str, missing: tuple[str, ...]) -> dict[str, Any]:
    """Return the line with the result of a change, without its hashes."""
    return {"number": number, "time": now(), "result": result, "missing": list(missing)}


def chained(line: dict[str, Any], previous: str) -> dict[str, Any]:
    """Return a line with its hashes. ``previous`` is the hash of the line before it."""
    line = {**line, "previous": previous}
    return {**line, "hash": line_hash(line)}


class Journal(ChangeJournal):
    """The journal of one configuration file. Writers hold the lock of the file (`frontage.config.edit.locked`)."""

    def __init__(self, file: Path):
        file = file.resolve()
        self.folder = file.with_name(f".{file.name}.journal")
        self._log = self.folder / "log"
        self._texts = self.folder / "texts"
        self._kept: dict[str, None] | None = None
        """The hashes of the configurations in `texts`, the oldest first; None before they are listed."""
        self._lock = threading.RLock()
        self._forget()

    def begin(self, *beginnings: Beginning) -> list[int]:
        with self._writing():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            texts = (text for one in beginnings for text in (one.before, one.after) if text is not None)
            for text in dict.fromkeys(texts):
                self._keep(text)
            first = self.history().next_number()
            lines = [one.line(number) for number, one in enumerate(beginnings, first)]
            self._append(*lines)
            self._prune()
        return [int(line["number"]) for line in lines]

    def finish(self, results: Sequence[Result]) -> None:
        with self._writing():
            self._append(*(last_line(*result) for result in results))

    def text(self, sha256: str) -> str:
        try:
            found = (self._texts / f"{sha256}.yaml").read_text(encoding="utf-8")
        except FileNotFoundError:
            raise JournalError(
                f"the journal keeps only the last {KEPT_TEXTS} configurations, and not this one: undo a later change"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise JournalError(f"{self.folder}: cannot be read: {error}: make it readable") from None
        if digest(found) != sha256:
            raise JournalError(f"{self._texts / sha256}.yaml has been altered: restore the file from a backup")
        return found

    def verify(self) -> int:
        with self._lock:
            self._forget()
            found = History()
            for line in self._new_lines():
                if not found.follows(line):
                    raise JournalError(
                        f"{self._log}:{found.lines + 1}: the line, or the one before it, has been altered or removed"
                    )
                found.add(line)
            return found.lines

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines. Raises JournalError."""
        with self._lock:
            self._forget()
            found = self._new_lines()
            for line in found:
                self._history.add(line)
            return found

    def restore(self, texts: Mapping[str, str], lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines with hashes, and store the configurations of these lines. Raises JournalError."""
        with self._writing():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            for text in texts.values():
                self._keep(text)
            self.history()
            self._write(b"".join(encode(line) + b"\n" for line in lines))

    def history(self) -> History:
        with self._lock:
            for line in self._new_lines():
                self._history.add(line)
            return self._history

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except OSError as error:
                raise JournalError(f"{self.folder}: cannot be written: {error}: make the folder writable") from None

    def _forget(self) -> None:
        """Forget the lines that have been read."""
        self._history = History()
        self._read = 0
        """The number of bytes of whole lines that have been read."""
        self._last = b""
        """The last line that has been read, with its line break."""

    def _new_lines(self) -> list[dict[str, Any]]:
        """Return the lines since the last call, or all lines if the log has been replaced."""
        try:
            with self._log.open("rb") as log:
                log.seek(self._read - len(self._last))
                data = log.read()
                if not data.startswith(self._last):
                    self._forget()
                    log.seek(0)
                    data = log.read()
        except FileNotFoundError:
            self._forget()
            return []
        except OSError as error:
            raise JournalError(f"{self._log}: cannot be read: {error}: make it readable") from None
        # A crash may have truncated the last line. Its change was not made.
        new = data[len(self._last) : data.rfind(b"\n") + 1].splitlines(keepends=True)
        found = []
        for number, line in enumerate(new, start=self._history.lines + 1):
            try:
                found.append(decode(line))
            except ValueError:
                self._forget()
                raise JournalError(f"{self._log}:{number}: not a line of a journal: restore the file from a backup") from None
        if new:
            self._read += sum(map(len, new))
            self._last = new[-1]
        return found

    def _append(self, *lines: dict[str, Any]) -> None:
        data, head = b"", self.history().head
        for line in lines:
            whole = chained(line, head)
            data, head = data + encode(whole) + b"\n", whole["hash"]
        self._write(data)

    def _write(self, data: bytes) -> None:
        """Write whole lines after those that have been read."""
        handle = os.open(self._log, os.O_WRONLY | os.O_CREAT, OWNER_ONLY)
        try:
            os.ftruncate(handle, self._read)  # removes a line that a crash has truncated
            os.pwrite(handle, data, self._read)
            os.fsync(handle)
        finally:
            os.close(handle)

    def _keep(self, text: str) -> None:
        self._texts.mkdir(mode=0o700, exist_ok=True)
        sha256 = digest(text)
        file = self._texts / f"{sha256}.yaml"
        if not file.exists():
            replace(file, text, OWNER_ONLY)
        os.utime(file)
        kept = self._listed()
        kept.pop(sha256, None)
        kept[sha256] = None

    def _listed(self) -> dict[str, None]:
        if self._kept is None:
            files = sorted(self._texts.glob("*.yaml"), key=lambda file: file.stat().st_mtime_ns)
            self._kept = dict.fromkeys(file.stem for file in files)
        return self._kept

    def _prune(self) -> None:
        kept = self._listed()
        while len(kept) > KEPT_TEXTS:
            oldest = next(iter(kept))
            del kept[oldest]
            (self._texts / f"{oldest}.yaml").unlink(missing_ok=True)

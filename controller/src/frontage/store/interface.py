# SPDX-License-Identifier: Apache-2.0
"""The interface of stores, and the store of a single controller: the configuration file, and the journal next to it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from frontage.changes.journal import ChangeJournal, Journal
from frontage.config.edit import Edit, Record, change_file, locked, read_file


class Store(Protocol):
    """A configuration and its journal. The methods block, so call them in threads."""

    @property
    def file(self) -> Path:
        """The configuration file, or this controller's copy. Paths in the configuration are relative to its folder."""
        ...

    @property
    def journal(self) -> ChangeJournal:
        """The changes of the configuration."""
        ...

    def read(self) -> str:
        """Return the text of the configuration. Raises EditError."""
        ...

    def change(self, edit: Edit, record: Record) -> None:
        """Apply ``edit``. ``record`` receives the text before and after the edit, and records the change in the journal.

        Raises ConfigError, EditError and the errors of ``edit`` and ``record``, and then changes nothing.
        """
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Keep other writers out. Raises OSError."""
        ...


class FileStore:
    """A configuration file, which text editors can change as well, and the journal next to it."""

    def __init__(self, file: Path):
        self.file = file
        self.journal = Journal(file)

    def read(self) -> str:
        return read_file(self.file)

    def change(self, edit: Edit, record: Record) -> None:
        change_file(self.file, edit, record)

    def locked(self) -> AbstractContextManager[None]:
        return locked(self.file.resolve())

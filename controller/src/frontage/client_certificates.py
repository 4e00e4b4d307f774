# SPDX-License-Identifier: Apache-2.0
"""Roles of clients by the names in their certificates.

The file of a service lists the names:

    [[certificates]]
    name = "monitor.example"
    may = "viewer"

    [[certificates]]
    name = "film1.example"
    server = "film1"

A name with ``server`` belongs to the machine of a server, which may read the cookie keys of this server and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from frontage.entries_file import read_entries
from frontage.tokens import Level

L = TypeVar("L", bound=Level)


class ClientCertificatesError(Exception):
    """A file cannot be used; the message names the file, the entry and the fix."""


@dataclass(frozen=True, slots=True)
class Grant(Generic[L]):
    """The permission of the owner of a certificate."""

    name: str
    may: L | None
    """None for the machine of a server."""
    server: str | None


class ClientCertificates(Generic[L]):
    """The grants of a file."""

    def __init__(self, grants: dict[str, Grant[L]]):
        self._grants = grants

    @classmethod
    def load(cls, file: Path, levels: type[L]) -> ClientCertificates[L]:
        """Read a file. Raises ClientCertificatesError."""
        found: dict[str, Grant[L]] = {}
        for place, entry in read_entries(file, "certificates", ClientCertificatesError):
            if not _is_entry(entry, levels):
                what = f"needs `name`, and either `may` ({', '.join(levels)}) or `server`"
                raise ClientCertificatesError(f"{place} {what}: correct it")
            if entry["name"] in found:
                raise ClientCertificatesError(f"{place} is a duplicate: remove one")
            may = levels(entry["may"]) if "may" in entry else None
            found[entry["name"]] = Grant(entry["name"], may, entry.get("server"))
        return cls(found)

    @property
    def servers(self) -> frozenset[str]:
        """The servers that certificates belong to."""
        return frozenset(grant.server for grant in self._grants.values() if grant.server is not None)

    def grant(self, names: Iterable[str]) -> Grant[L] | None:
        """Return the grant of the first of these names that has one."""
        return next((self._grants[name] for name in names if name in self._grants), None)


def _is_entry(entry: Any, levels: type[Level]) -> bool:
    if not isinstance(entry, dict) or set(entry) not in ({"name", "may"}, {"name", "server"}):
        return False
    is_level = "may" not in entry or entry["may"] in list(levels)
    return is_level and all(isinstance(value, str) and value for value in entry.values())

# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens (RFC 6750) and their permissions.

The file of a service lists its tokens:

    [[tokens]]
    name = "monitor"
    may = "read"
    sha256 = "..."

It contains only SHA-256 hashes. A token has 256 random bits, so its hash does not reveal it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from frontage.entries_file import read_entries

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


class Level(StrEnum):
    """Base class of permissions. Each member includes those before it."""

    def includes(self, other: Self) -> bool:
        """Return whether this permission includes ``other``."""
        order = list(type(self))
        return order.index(self) >= order.index(other)


L = TypeVar("L", bound=Level)


class TokenFileError(Exception):
    """A file with tokens cannot be used; the message names the file, the entry and the fix."""


class UnknownTokenError(Exception):
    """A request has no valid token; the message says why."""


@dataclass(frozen=True, slots=True)
class Bearer(Generic[L]):
    """The owner of a token."""

    name: str
    may: L


class Tokens(Generic[L]):
    """The tokens of a file. The duration of a lookup by hash reveals nothing about a token."""

    def __init__(self, bearers: dict[str, Bearer[L]]):
        self._bearers = bearers

    @classmethod
    def load(cls, file: Path, levels: type[L], command: str) -> Tokens[L]:
        """Read a file. ``command`` is the command that prints an entry, for messages. Raises TokenFileError."""
        found: dict[str, Bearer[L]] = {}
        for place, entry in read_entries(file, "tokens", TokenFileError):
            if not _is_entry(entry, levels):
                what = f"needs `name`, `may` ({', '.join(levels)}) and `sha256`"
                raise TokenFileError(f"{place} {what}, and nothing else: `{command}` prints one")
            if entry["sha256"] in found:
                raise TokenFileError(f"{place} is a duplicate: remove one")
            found[entry["sha256"]] = Bearer(entry["name"], levels(entry["may"]))
        return cls(found)

    def bearer(self, authorization: str | None) -> Bearer[L]:
        """Return the owner of the token in a header ``Authorization``. Raises UnknownTokenError."""
        if authorization is None:
            raise UnknownTokenError("missing token: send the header Authorization: Bearer TOKEN")
        matched = _BEARER.fullmatch(authorization.strip())
        found = None if matched is None else self._bearers.get(hashlib.sha256(matched[1].encode()).hexdigest())
        if found is None:
            raise UnknownTokenError("unknown token")
        return found


def generate(name: str, may: Level) -> tuple[str, str]:
    """Return a new token, and its entry for the file. Raises ValueError."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"invalid name {name[:64]!r}: give 1 to 64 letters, digits, '.', '_' or '-'")
    token = secrets.token_urlsafe(32)
    hashed = hashlib.sha256(token.encode()).hexdigest()
    return token, f'[[tokens]]\nname = "{name}"\nmay = "{may}"\nsha256 = "{hashed}"'


def _is_entry(entry: Any, levels: type[Level]) -> bool:
    forms = {"name": _NAME, "sha256": _HASH, "may": re.compile("|".join(levels))}
    is_table = isinstance(entry, dict) and set(entry) == set(forms)
    return is_table and all(isinstance(entry[key], str) and form.fullmatch(entry[key]) for key, form in forms.items())

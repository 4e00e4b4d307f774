# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens (RFC 6750) and their permissions.

The file holds only SHA-256 hashes. A token has 256 random bits, so its hash does not reveal it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any

from frontage_records.errors import AuthenticationError, EngineError, ForbiddenError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


class Permission(StrEnum):
    """The permission of a client. Each includes those before it."""

    READ = "read"
    WRITE = "write"
    PLACE = "place"

    def includes(self, other: Permission) -> bool:
        """Return whether this permission includes ``other``."""
        order = list(Permission)
        return order.index(self) >= order.index(other)


class Tokens:
    """Permissions by the hash of the token. The duration of a lookup by hash reveals nothing about a token."""

    def __init__(self, may: dict[str, Permission]):
        self._may = may

    @classmethod
    def load(cls, file: Path) -> Tokens:
        """Read a token file. Raises EngineError, which names the file, the entry and the fix."""
        try:
            entries = tomllib.loads(file.read_text(encoding="utf-8")).get("tokens", [])
        except (OSError, ValueError) as error:
            raise EngineError(f"{file}: cannot read tokens: {error}") from None
        if not isinstance(entries, list):
            raise EngineError(f"{file}: tokens must be tables: write [[tokens]] above each")
        found: dict[str, Permission] = {}
        for number, entry in enumerate(entries, start=1):
            hashed, may = _parse(file, number, entry)
            if hashed in found:
                raise EngineError(f"{file}: token {number} is a duplicate: remove one")
            found[hashed] = may
        return cls(found)

    def check(self, authorization: str | None, need: Permission) -> None:
        """Check the Authorization header. Raises AuthenticationError, ForbiddenError."""
        if authorization is None:
            raise AuthenticationError("missing token: send the header Authorization: Bearer TOKEN")
        matched = _BEARER.fullmatch(authorization.strip())
        may = None if matched is None else self._may.get(hashlib.sha256(matched[1].encode()).hexdigest())
        if may is None:
            raise AuthenticationError("unknown token: see `frontage records token`")
        if not may.includes(need):
            raise ForbiddenError(f"the token permits {may}: this request needs {need}")


def generate(name: str, may: Permission) -> tuple[str, str]:
    """Return a new token, and its entry for the file. Raises ValueError."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"invalid name {name[:64]!r}: give 1 to 64 letters, digits, '.', '_' or '-'")
    token = secrets.token_urlsafe(32)
    hashed = hashlib.sha256(token.encode()).hexdigest()
    return token, f'[[tokens]]\nname = "{name}"\nmay = "{may}"\nsha256 = "{hashed}"'


def _parse(file: Path, number: int, entry: Any) -> tuple[str, Permission]:
    fields = {"name": _NAME, "sha256": _HASH, "may": re.compile("|".join(Permission))}
    good = isinstance(entry, dict) and set(entry) == set(fields)
    if not good or not all(isinstance(entry[key], str) and form.fullmatch(entry[key]) for key, form in fields.items()):
        what = f"needs `name`, `may` ({', '.join(Permission)}) and `sha256`"
        raise EngineError(f"{file}: token {number} {what}, and nothing else: `frontage records token` prints one")
    return entry["sha256"], Permission(entry["may"])

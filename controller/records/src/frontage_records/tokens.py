"""Bearer tokens (RFC 6750): who may do what with the store over HTTP.

The file has their SHA-256 only: a token is drawn with 256 bits, so that this says nothing of it.
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


class May(StrEnum):
    """What a client may do; each includes those before."""

    READ = "read"
    WRITE = "write"
    PLACE = "place"

    def includes(self, other: May) -> bool:
        order = list(May)
        return order.index(self) >= order.index(other)


class Tokens:
    """What bearers may do, by the hash of their token: a lookup by hash tells nothing by the time that it takes."""

    def __init__(self, may: dict[str, May]):
        self._may = may

    @classmethod
    def load(cls, file: Path) -> Tokens:
        """Raises EngineError, which names the file, the entry and the fix."""
        try:
            entries = tomllib.loads(file.read_text(encoding="utf-8")).get("tokens", [])
        except (OSError, ValueError) as error:
            raise EngineError(f"{file}: no tokens can be read: {error}") from None
        if not isinstance(entries, list):
            raise EngineError(f"{file}: tokens are tables; write [[tokens]] above each")
        found: dict[str, May] = {}
        for number, entry in enumerate(entries, start=1):
            hashed, may = _parse(file, number, entry)
            if hashed in found:
                raise EngineError(f"{file}: token {number} is there twice; remove one")
            found[hashed] = may
        return cls(found)

    def check(self, authorization: str | None, need: May) -> None:
        """By the header of that name. Raises AuthenticationError, ForbiddenError."""
        if authorization is None:
            raise AuthenticationError("say who you are: Authorization: Bearer TOKEN")
        matched = _BEARER.fullmatch(authorization.strip())
        may = None if matched is None else self._may.get(hashlib.sha256(matched[1].encode()).hexdigest())
        if may is None:
            raise AuthenticationError("the token is none of those that are known here; see `frontage records token`")
        if not may.includes(need):
            raise ForbiddenError(f"the token is for {may}, this needs one for {need}")


def draw(name: str, may: May) -> tuple[str, str]:
    """A token, and its entry for the file. Raises ValueError."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name[:64]!r} is no name; give 1 to 64 letters, digits, '.', '_' or '-'")
    token = secrets.token_urlsafe(32)
    hashed = hashlib.sha256(token.encode()).hexdigest()
    return token, f'[[tokens]]\nname = "{name}"\nmay = "{may}"\nsha256 = "{hashed}"'


def _parse(file: Path, number: int, entry: Any) -> tuple[str, May]:
    fields = {"name": _NAME, "sha256": _HASH, "may": re.compile("|".join(May))}
    good = isinstance(entry, dict) and set(entry) == set(fields)
    if not good or not all(isinstance(entry[key], str) and form.fullmatch(entry[key]) for key, form in fields.items()):
        what = f"needs `name`, `may` ({', '.join(May)}) and `sha256`"
        raise EngineError(f"{file}: token {number} {what}, and nothing else; `frontage records token` prints one")
    return entry["sha256"], May(entry["may"])

# SPDX-License-Identifier: Apache-2.0
"""The permissions of the record store's clients."""

from __future__ import annotations

from pathlib import Path

from frontage import tokens
from frontage.tokens import Level, TokenFileError, UnknownTokenError
from frontage_records.errors import AuthenticationError, EngineError, ForbiddenError

_COMMAND = "frontage records token"


class Permission(Level):
    """The permission of a client. Each includes those before it."""

    READ = "read"
    WRITE = "write"
    PLACE = "place"


class Tokens:
    """The tokens of a file."""

    def __init__(self, known: tokens.Tokens[Permission]):
        self._known = known

    @classmethod
    def load(cls, file: Path) -> Tokens:
        """Read a token file. Raises EngineError, which names the file, the entry and the fix."""
        try:
            return cls(tokens.Tokens.load(file, Permission, _COMMAND))
        except TokenFileError as error:
            raise EngineError(str(error)) from None

    def check(self, authorization: str | None, need: Permission) -> None:
        """Check the Authorization header. Raises AuthenticationError, ForbiddenError."""
        try:
            may = self._known.bearer(authorization).may
        except UnknownTokenError as error:
            raise AuthenticationError(f"{error}: see `{_COMMAND}`") from None
        if not may.includes(need):
            raise ForbiddenError(f"the token permits {may}: this request needs {need}")

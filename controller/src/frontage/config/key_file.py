# SPDX-License-Identifier: Apache-2.0
"""The key file for QUIC servers, which seal cookies themselves (``keys`` in ``host-agents/cclb7-quic``)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from frontage.config.schema import Config
from frontage.cookie import CookieKey

OWNER_ONLY = 0o600


def key_file(config: Config) -> str:
    """Return the keys as TOML: a table ``[[keys]]`` with id and hexadecimal secret for each key, the oldest first."""
    return format_keys(config.cookie_keys)


def format_keys(keys: Iterable[CookieKey]) -> str:
    """Return keys as TOML."""
    return "\n".join(f'[[keys]]\nid = {key.id}\nsecret = "{key.secret.hex()}"\n' for key in keys)


def replace(file: Path, text: str, mode: int | None = None) -> None:
    """Replace the content of a file atomically. Symbolic links and the file's owner are preserved.

    Without ``mode``, the file keeps its mode; a new file is accessible to its owner only. Raises OSError.
    """
    file = file.resolve()
    before = file.stat() if file.exists() else None
    if mode is None:
        mode = OWNER_ONLY if before is None else before.st_mode & 0o7777
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fchmod(out.fileno(), mode)
            if before is not None and os.geteuid() == 0:
                os.fchown(out.fileno(), before.st_uid, before.st_gid)
            os.fsync(out.fileno())
        os.rename(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise

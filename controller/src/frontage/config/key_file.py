"""The keys as a file for servers that seal cookies themselves: QUIC's (``keys`` in ``host-agents/cclb7-quic``)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from frontage.config.schema import Config

OWNER_ONLY = 0o600


def key_file(config: Config) -> str:
    """TOML: a table ``[[keys]]`` for each key in force, the oldest first, with its id and its secret in hexadecimal."""
    return "\n".join(f'[[keys]]\nid = {key.id}\nsecret = "{key.secret.hex()}"\n' for key in config.cookie_keys)


def replace(file: Path, text: str, mode: int | None = None) -> None:
    """Write a file of which readers see the old text or the new one, never a part. A link stays a link, and the file's owner stays.

    Without ``mode``, its mode stays too; a new file is its owner's only. Raises OSError.
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

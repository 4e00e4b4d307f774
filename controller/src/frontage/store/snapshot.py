# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a store: the journal with its configurations, and the allocations. Backups are snapshots in a file.

Only encrypted snapshots contain secret files. Inline secrets cannot be removed, because the journal's hashes cover the
configurations, so a snapshot with inline secrets must be encrypted.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from frontage.changes.history import History, digest
from frontage.config.document import parse

FORMAT = "frontage backup 1"
_ENCRYPTED = "frontage backup 1, encrypted"
_SECRET = re.compile(r"\bsecret\s*:")
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 1 << 15, 8, 1
"""The cost of a guess of the passphrase: about 0.1 s and 32 MB (RFC 7914)."""
_SALT_BYTES, _NONCE_BYTES, _KEY_BYTES = 16, 12, 32


class SnapshotError(Exception):
    """A snapshot cannot be read, written or restored; the message says why and what to do."""


@dataclass(frozen=True)
class Snapshot:
    """The content of a store, which is verified at the first access to its changes."""

    lines: list[dict[str, Any]]
    """The lines of the journal."""
    texts: dict[str, str]
    """The configurations that the journal still has, by hash."""
    allocations: dict[str, Any] = field(default_factory=dict)
    """The servers from discovery, with their SIDs."""
    secrets: dict[str, str] = field(default_factory=dict)
    """The secrets of keys with secret files, by key id."""

    def history(self) -> History:
        """Return the changes. Raises SnapshotError if the snapshot is damaged."""
        return self._checked

    @cached_property
    def _checked(self) -> History:
        found = History()
        for number, line in enumerate(self.lines, start=1):
            if not isinstance(line.get("number"), int) or not found.follows(line):
                raise SnapshotError(f"line {number} of the journal, or the one before it, has been altered: use another backup")
            found.add(line)
        for sha256, text in self.texts.items():
            if digest(text) != sha256:
                raise SnapshotError(f"the configuration {sha256} has been altered: use another backup")
        made = found.made()
        if made is None or made.after not in self.texts:
            raise SnapshotError("missing configuration: start a controller with it first")
        return found

    @property
    def configuration(self) -> str:
        """The text of the current configuration. Raises SnapshotError."""
        made = self.history().made()
        assert made is not None
        return self.texts[made.after]

    @property
    def has_secrets(self) -> bool:
        """Whether anything in the snapshot is secret."""
        return bool(self.secrets) or any(map(_has_secret, self.texts.values()))

    def encode(self, passphrase: str | None) -> str:
        """Return the snapshot as the text of a file, encrypted if there is a passphrase. Raises SnapshotError."""
        self.history()
        if passphrase is not None:
            return _encrypt(json.dumps(asdict(self)), passphrase)
        plain = Snapshot(self.lines, self.texts, self.allocations)
        if plain.has_secrets:
            raise SnapshotError(
                "a configuration in the journal contains a secret: encrypt the backup (--passphrase-file), "
                "or start a new journal with `secret_file` instead of `secret`"
            )
        return json.dumps({"format": FORMAT, **asdict(plain)}, indent=1) + "\n"

    @classmethod
    def decode(cls, text: str, passphrase: str | None) -> Snapshot:
        """Return the snapshot in the text of a file, after checking it. Raises SnapshotError."""
        try:
            found = json.loads(text)
            if found["format"] == _ENCRYPTED:
                found = json.loads(_decrypt(found, passphrase))
            elif found["format"] != FORMAT:
                raise SnapshotError(f'unknown format "{found["format"]}": use the version of Frontage that made the backup')
            snapshot = cls(found["lines"], found["texts"], found["allocations"], found["secrets"])
        except (ValueError, KeyError, TypeError):
            raise SnapshotError("not a Frontage backup, or damaged: use another file") from None
        snapshot.history()
        return snapshot


def _has_secret(text: str) -> bool:
    """Return whether a configuration contains the secret of a key inline. Comments do not count."""
    if _SECRET.search(text) is None:
        return False
    data = parse(text).data
    keys = data.get("keys") if isinstance(data, dict) else None
    return not isinstance(keys, list) or any(not isinstance(key, dict) or "secret" in key for key in keys)


def _encrypt(text: str, passphrase: str) -> str:
    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    data = _cipher(passphrase, salt).encrypt(nonce, text.encode(), _ENCRYPTED.encode())
    parts = {"salt": salt, "nonce": nonce, "data": data}
    return json.dumps({"format": _ENCRYPTED, **{name: base64.b64encode(part).decode() for name, part in parts.items()}}) + "\n"


def _decrypt(found: Mapping[str, str], passphrase: str | None) -> str:
    if passphrase is None:
        raise SnapshotError("the backup is encrypted: use --passphrase-file")
    from cryptography.exceptions import InvalidTag

    salt, nonce, data = (base64.b64decode(found[name]) for name in ("salt", "nonce", "data"))
    try:
        return str(_cipher(passphrase, salt).decrypt(nonce, data, _ENCRYPTED.encode()).decode())
    except InvalidTag:
        raise SnapshotError("wrong passphrase, or altered backup: check the passphrase, or use another backup") from None


def _cipher(passphrase: str, salt: bytes) -> Any:
    """Return AES-256-GCM with a key from the passphrase."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
    except ModuleNotFoundError:
        raise SnapshotError("encryption needs the Python package cryptography: run `pip install 'frontage[cluster]'`") from None
    key = Scrypt(salt=salt, length=_KEY_BYTES, n=_SCRYPT_N, r=_SCRYPT_R, p=_SCRYPT_P).derive(passphrase.encode())
    return AESGCM(key)


def read_passphrase(file: Path | None) -> str | None:
    """Return the passphrase in a file, or None without a file. Raises SnapshotError."""
    if file is None:
        return None
    try:
        found = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SnapshotError(f"{file}: cannot be read: {error}: write the passphrase to this file") from None
    if not found:
        raise SnapshotError(f"{file}: empty file: write the passphrase to it")
    return found

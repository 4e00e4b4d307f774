# SPDX-License-Identifier: Apache-2.0
"""Edits of a configuration file that preserve comments, order and layout.

Every edit takes the text of the file and returns the changed text. `change_file` applies an edit to a file atomically, and
only if the result is a valid configuration.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from frontage.config.devices import DeviceState
from frontage.config.document import Document, Plain, parse
from frontage.config.key_file import replace
from frontage.config.load import loads
from frontage.config.schema import Config
from frontage.config.vips import Policy, ServerState
from frontage.config.yaml_edit import Value, append_item, remove_item, set_field
from frontage.limits import MAX_SID

Edit = Callable[[str], str]
Record = Callable[[str, str], None]
"""Called with the text before and after an edit, before the file changes."""


class EditError(Exception):
    """The edit is impossible; the message says why and what to do."""


def read_file(file: Path) -> str:
    """Return the text of a configuration file. Raises EditError."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EditError(f"{file}: cannot be read: {error}: make it a readable UTF-8 text file") from None


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock the file's folder against other commands. The file itself cannot be locked, because edits replace it. Raises OSError."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def change_file(file: Path, edit: Edit, record: Record | None = None) -> Config:
    """Apply ``edit`` to the file and return the new configuration. ``record`` may raise EditError, too.

    Raises ConfigError or EditError, and then leaves the file unchanged.
    """
    # Change the target of a symbolic link, and lock the target's folder.
    file = file.resolve()
    try:
        with locked(file):
            before = file.read_text(encoding="utf-8")
            text = edit(before)
            config = loads(text, file)
            if record is not None:
                record(before, text)
            replace(file, text)
            return config
    except OSError as error:
        raise EditError(f"{file}: cannot be changed: {error}: make the file and its folder writable") from None


def add_server(
    text: str,
    *,
    name: str,
    vip: str,
    address: str,
    port: int,
    sid: int | None = None,
    weight: int | None = None,
    zone: str | None = None,
) -> str:
    """Append a server.

    Without ``sid``, the server gets a free SID, above those in use if possible: clients may still echo the cookies of a
    server that was removed.
    """
    document = parse(text)
    if _find(document, "servers", name) is not None:
        raise EditError(f'duplicate server name "{name}": use another name, or remove the existing server first')
    if sid is None:
        sid = _free_sid(document)
    fields: dict[str, Value] = {"name": name, "vip": vip, "address": address, "port": port, "sid": sid}
    if weight is not None:
        fields["weight"] = weight
    if zone is not None:
        fields["zone"] = zone
    return append_item(text, document, "servers", fields)


def set_server_state(text: str, name: str, state: ServerState) -> str:
    """Set the state of a server."""
    document = parse(text)
    index = _require(document, "servers", name, "server")
    return set_field(text, document, ("servers", index), "state", str(state))


def set_server_weight(text: str, name: str, weight: int) -> str:
    """Set the weight of a server."""
    document = parse(text)
    return set_field(text, document, ("servers", _require(document, "servers", name, "server")), "weight", weight)


def set_device_state(text: str, name: str, state: DeviceState) -> str:
    """Set the state of one switch of a fleet."""
    document = parse(text)
    index = _require(document, "devices", name, "device")
    return set_field(text, document, ("devices", index), "state", str(state))


def remove_server(text: str, name: str) -> str:
    """Remove a server."""
    document = parse(text)
    return remove_item(text, document, ("servers", _require(document, "servers", name, "server")))


def set_policy(text: str, vip: str, policy: Policy | None = None, alpha: float | None = None) -> str:
    """Set the policy of a VIP, its alpha, or both."""
    index = _require(parse(text), "vips", vip, "VIP")
    if policy is not None:
        text = set_field(text, parse(text), ("vips", index), "policy", str(policy))
    if alpha is not None:
        text = set_field(text, parse(text), ("vips", index), "alpha", alpha)
    return text


def rotate_key(text: str, folder: Path) -> str:
    """Add a key with the next id and a random secret, and remove all older keys but the newest.

    If the newest key has its secret in a file, the new key gets a file in the same place. Relative paths start at
    ``folder``.
    """
    document = parse(text)
    keys = _items(document, "keys")
    ids = [int(str(key["id"])) for key in keys]
    newest = max(ids)
    secret = secrets.token_hex(32)
    fields: dict[str, Value] = {"id": newest + 1}
    file = keys[ids.index(newest)].get("secret_file")
    if file is None:
        fields["secret"] = secret
    else:
        new_file = Path(str(file)).with_name(f"key-{newest + 1}.hex")
        handle = os.open(folder / new_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(secret + "\n")
        fields["secret_file"] = str(new_file)
    text = append_item(text, document, "keys", fields)
    for index in sorted((i for i, key_id in enumerate(ids) if key_id != newest), reverse=True):
        text = remove_item(text, parse(text), ("keys", index))
    return text


def with_keys_of(text: str, current: str) -> str:
    """Return ``text`` with the keys of the configuration ``current``."""
    before, wanted = _items(parse(text), "keys"), _items(parse(current), "keys")
    if before == wanted:
        return text
    for key in wanted:
        text = append_item(text, parse(text), "keys", {name: str(value) for name, value in key.items()})
    for index in reversed(range(len(before))):
        text = remove_item(text, parse(text), ("keys", index))
    return text


def _items(document: Document, field: str) -> list[Mapping[str, Plain]]:
    items = document.data.get(field) if isinstance(document.data, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _find(document: Document, field: str, name: str) -> int | None:
    return next((i for i, item in enumerate(_items(document, field)) if item.get("name") == name), None)


def _require(document: Document, field: str, name: str, noun: str) -> int:
    index = _find(document, field, name)
    if index is None:
        names = ", ".join(str(item.get("name")) for item in _items(document, field)[:8]) or "none"
        raise EditError(f'unknown {noun} "{name}": use one of: {names}')
    return index


def _free_sid(document: Document) -> int:
    used = {int(str(item["sid"])) for item in _items(document, "servers")}
    highest = max(used, default=0)
    free = range(highest + 1, MAX_SID + 1) if highest < MAX_SID else (sid for sid in range(MAX_SID + 1) if sid not in used)
    sid = next(iter(free), None)
    if sid is None:
        raise EditError(f"no free server id: all from 0 to {MAX_SID} are in use: remove a server first")
    return sid

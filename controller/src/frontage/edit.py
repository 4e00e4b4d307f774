"""Changes to a configuration file that leave everything else in it as it is: comments, order, layout.

Every function takes the file's text and returns the changed text; `change_file` applies one to a file, atomically, and only
if the result is a valid configuration.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from frontage.config import Config, load, loads
from frontage.keyfile import replace
from frontage.limits import MAX_SID
from frontage.vips import Policy, ServerState
from frontage.yamlfile import Document, Plain, Position, parse
from frontage.yamlfile import Path as FieldPath

Edit = Callable[[str], str]
Value = str | int | float


class EditError(Exception):
    """The change cannot be made; the text says why, and what to do instead."""


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Keeps other commands from changing the same file meanwhile. The folder is locked: the file itself is replaced."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def change_file(file: Path, edit: Edit) -> Config:
    """Apply ``edit``, and return the configuration that it makes. Raises ConfigError, EditError; then the file is as it was."""
    # What a link leads to is changed, and that one's folder is locked.
    file = file.resolve()
    try:
        with _locked(file):
            load(file)
            text = edit(file.read_text(encoding="utf-8"))
            config = loads(text, file)
            replace(file, text)
            return config
    except OSError as error:
        raise EditError(f"{file}: cannot be changed: {error}; make the file and its folder writable") from None


def add_server(
    text: str, *, name: str, vip: str, address: str, port: int, sid: int | None = None, weight: int | None = None
) -> str:
    """Append a server. Without ``sid``, it gets one that none has, above those in use while there is room: the cookies of
    a server that was removed may still be echoed."""
    document = parse(text)
    if _find(document, "servers", name) is not None:
        raise EditError(f"there is a server {name} already; give another name, or remove that one first")
    if sid is None:
        sid = _free_sid(document)
    fields: dict[str, Value] = {"name": name, "vip": vip, "address": address, "port": port, "sid": sid}
    if weight is not None:
        fields["weight"] = weight
    return _append(text, document, "servers", fields)


def set_server_state(text: str, name: str, state: ServerState) -> str:
    document = parse(text)
    index = _require(document, "servers", name, "server")
    return _set(text, document, ("servers", index), "state", str(state))


def remove_server(text: str, name: str) -> str:
    document = parse(text)
    return _remove(text, document, ("servers", _require(document, "servers", name, "server")))


def set_policy(text: str, vip: str, policy: Policy, alpha: float | None = None) -> str:
    index = _require(parse(text), "vips", vip, "VIP")
    text = _set(text, parse(text), ("vips", index), "policy", str(policy))
    if alpha is not None:
        text = _set(text, parse(text), ("vips", index), "alpha", alpha)
    return text


def rotate_key(text: str, folder: Path) -> str:
    """Add a key with the next id and a fresh secret; of the older ones only the newest stays.

    Where the newest key's secret stands in a file of its own, the new one's gets one beside it; relative paths start at
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
    text = _append(text, document, "keys", fields)
    for index in sorted((i for i, key_id in enumerate(ids) if key_id != newest), reverse=True):
        text = _remove(text, parse(text), ("keys", index))
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
        raise EditError(f"there is no {noun} {name}; the file has: {names}")
    return index


def _free_sid(document: Document) -> int:
    used = {int(str(item["sid"])) for item in _items(document, "servers")}
    highest = max(used, default=0)
    free = range(highest + 1, MAX_SID + 1) if highest < MAX_SID else (sid for sid in range(MAX_SID + 1) if sid not in used)
    sid = next(iter(free), None)
    if sid is None:
        raise EditError(f"all server ids from 0 to {MAX_SID} are in use; remove a server first")
    return sid


# The layout of YAML, as far as these changes need it.


# What YAML 1.1 counts as a line, and so the positions do.
_LINE = re.compile("[^\n\r\x85\u2028\u2029]*(?:\r\n|[\n\r\x85\u2028\u2029])|[^\n\r\x85\u2028\u2029]+$")


class _Lines:
    def __init__(self, text: str):
        self.lines = _LINE.findall(text)
        if self.lines and not self.lines[-1].endswith("\n"):
            self.lines[-1] += "\n"

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def insert(self, at: Position, new: str) -> None:
        line = self.lines[at.line - 1]
        self.lines[at.line - 1] = line[: at.column - 1] + new + line[at.column - 1 :]

    def replace(self, start: Position, end: Position, new: str) -> None:
        head, tail = self.lines[start.line - 1][: start.column - 1], self.lines[end.line - 1][end.column - 1 :]
        self.lines[start.line - 1 : end.line] = [head + new + tail]


def _scalar(value: Value) -> str:
    """Plain where that is safe in every place, else quoted."""
    text = str(value)
    safe = text.lower() != "null" and re.fullmatch(r"[A-Za-z0-9._/][A-Za-z0-9._/-]*", text)
    return text if safe else json.dumps(text)


def _set(text: str, document: Document, mapping: FieldPath, key: str, value: Value) -> str:
    lines, path, new = _Lines(text), (*mapping, key), _scalar(value)
    if path in document.values:
        start, end = document.values[path], document.ends[path]
        lines.replace(start, end, f" {new}" if start == end else new)
    elif mapping in document.flow:
        lines.insert(document.ends[_last_child(document, mapping)], f", {key}: {new}")
    else:
        indent = " " * (document.values[mapping].column - 1)
        lines.lines.insert(document.ends[mapping].line, f"{indent}{key}: {new}\n")
    return lines.text


def _last_child(document: Document, collection: FieldPath) -> FieldPath:
    children = (path for path in document.ends if len(path) == len(collection) + 1 and path[:-1] == collection)
    return max(children, key=lambda path: (document.ends[path].line, document.ends[path].column))


def _append(text: str, document: Document, field: str, item: Mapping[str, Value]) -> str:
    lines, path = _Lines(text), (field,)
    braces = "{ " + ", ".join(f"{key}: {_scalar(value)}" for key, value in item.items()) + " }"
    items = document.data.get(field) if isinstance(document.data, dict) else None
    if not items:
        block = f"{field}:\n" + _block("  ", item)
        if path not in document.keys:
            lines.lines.append("\n" + block)
        else:
            key, end = document.keys[path], document.ends.get(path, document.values[path])
            lines.replace(key, end, block.rstrip("\n"))
        return lines.text
    assert isinstance(items, list)
    last = (field, len(items) - 1)
    if path in document.flow:
        lines.insert(document.ends[last], f", {braces}")
        return lines.text
    dash = _dash(lines, document, last)
    indent = " " * (dash.column - 1)
    lines.lines.insert(document.ends[last].line, f"{indent}- {braces}\n" if last in document.flow else _block(indent, item))
    return lines.text


def _block(indent: str, item: Mapping[str, Value]) -> str:
    rows = [f"{key}: {_scalar(value)}\n" for key, value in item.items()]
    return "".join(indent + ("- " if i == 0 else "  ") + row for i, row in enumerate(rows))


def _dash(lines: _Lines, document: Document, item: FieldPath) -> Position:
    """Where the dash before a list's item stands."""
    start = document.values[item]
    line, column = start.line, start.column
    while True:
        before = lines.lines[line - 1][: column - 1]
        if before.strip() == "-":
            return Position(line, before.index("-") + 1)
        # The dash stands on a line of its own.
        line -= 1
        column = len(lines.lines[line - 1])


def _remove(text: str, document: Document, item: FieldPath) -> str:
    lines = _Lines(text)
    field, index = item[:-1], item[-1]
    assert isinstance(index, int)
    items = document.data.get(str(field[0])) if isinstance(document.data, dict) else None
    assert isinstance(items, list)
    if len(items) == 1:
        lines.replace(document.keys[field], document.ends[field], f"{field[0]}: []")
        return lines.text
    if field in document.flow:
        if index:
            lines.replace(document.ends[(*field, index - 1)], document.ends[item], "")
        else:
            lines.replace(document.values[item], document.values[(*field, 1)], "")
        return lines.text
    del lines.lines[_dash(lines, document, item).line - 1 : document.ends[item].line]
    return lines.text

# SPDX-License-Identifier: Apache-2.0
"""Edits of a YAML text that preserve comments, order and layout.

A ``document`` is the result of `frontage.config.document.parse` for the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from frontage.config.document import Document, Position
from frontage.config.document import Path as FieldPath

Value: TypeAlias = str | int | float

# A line as YAML 1.1 defines it; positions count such lines.
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
    """Return the value as a plain scalar where that is safe everywhere, otherwise quoted."""
    text = str(value)
    safe = text.lower() != "null" and re.fullmatch(r"[A-Za-z0-9._/][A-Za-z0-9._/-]*", text)
    return text if safe else json.dumps(text)


def set_field(text: str, document: Document, mapping: FieldPath, key: str, value: Value) -> str:
    """Set a key of the mapping at a path, and add the key if it is missing."""
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


def append_item(text: str, document: Document, field: str, item: Mapping[str, Value]) -> str:
    """Append an item to the top-level list ``field``, and add the list if it is missing."""
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
    """Return the position of the dash before a list item."""
    start = document.values[item]
    line, column = start.line, start.column
    while True:
        before = lines.lines[line - 1][: column - 1]
        if before.strip() == "-":
            return Position(line, before.index("-") + 1)
        # The dash stands on a line of its own.
        line -= 1
        column = len(lines.lines[line - 1])


def remove_item(text: str, document: Document, item: FieldPath) -> str:
    """Remove an item from its list."""
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

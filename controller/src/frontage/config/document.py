# SPDX-License-Identifier: Apache-2.0
"""YAML with the line and column of every value, for error messages and edits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    ScalarEvent,
    SequenceStartEvent,
)

Path: TypeAlias = tuple[str | int, ...]
Plain: TypeAlias = "str | list[Plain] | dict[str, Plain] | None"

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Position:
    """A line and a column, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file: its place, what is wrong, and the fix."""

    path: Path
    what: str
    fix: str
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data with the position of every node.

    Scalars stay text, and the schema gives them a type. So a secret of digits or a name like ``on`` is never mistaken for
    a number or a truth value.
    """

    data: Plain
    values: Mapping[Path, Position]
    keys: Mapping[Path, Position]
    ends: Mapping[Path, Position]
    """The position after the last character of each value, without comments and blank lines."""
    flow: Collection[Path]
    """The lists and mappings written in brackets or braces."""

    def position(self, path: Path) -> Position:
        """Return the position of the value at ``path``, or of its nearest existing parent if it is missing."""
        while path:
            if path in self.values:
                return self.values[path]
            path = path[:-1]
        return self.values.get((), Position(1, 1))

    def key_position(self, path: Path) -> Position:
        """Return the position of the key of the mapping entry at ``path``, or of its value if it has no key."""
        return self.keys.get(path) or self.position(path)


class DocumentError(Exception):
    """The text is not valid YAML, or uses YAML that configurations do not support."""

    def __init__(self, problems: Sequence[Problem]):
        super().__init__("; ".join(problem.what for problem in problems))
        self.problems = list(problems)


@lru_cache(maxsize=2)
def parse(text: str) -> Document:
    """Parse one YAML document, which must not be changed. Raises DocumentError.

    The cache halves the work of many edits, because the checked result of one edit is the input of the next.
    """
    reader = _Reader()
    try:
        for event in YAML(typ="safe", pure=False).parse(text):
            reader.take(event)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(mark.line + 1, mark.column + 1) if mark is not None else None
        what = " ".join(part for part in (error.problem, error.context) if part) or "invalid YAML"
        raise DocumentError([Problem((), what, "correct the YAML at this position", position)]) from None
    except (YAMLError, ValueError) as error:
        what = (str(error) or type(error).__name__).splitlines()[0]
        raise DocumentError([Problem((), what, "correct the YAML", Position(1, 1))]) from None
    if reader.problems:
        raise DocumentError(reader.problems)
    return Document(reader.root, reader.values, reader.keys, reader.ends, reader.flow)


@dataclass(slots=True)
class _Collection:
    """A list or mapping that is still open."""

    data: list[Plain] | dict[str, Plain]
    path: Path
    anchor: str | None
    key: str | None = None


class _Reader:
    """Builds a document from the parser's events, without recursion, so that no input can exhaust the stack."""

    def __init__(self) -> None:
        self.root: Plain = None
        self.values: dict[Path, Position] = {}
        self.keys: dict[Path, Position] = {}
        self.ends: dict[Path, Position] = {}
        self.flow: set[Path] = set()
        self.problems: list[Problem] = []
        self._open: list[_Collection] = []
        self._anchors: dict[str, Plain] = {}
        self._documents = 0
        self._dropped = 0

    def take(self, event: Event) -> None:
        if isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._problem((), "unexpected second document", "keep one document in the file", event)
        if self._documents != 1:
            return
        if self._dropped:
            # Inside a rejected collection: only its end matters.
            self._dropped += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        elif isinstance(event, CollectionEndEvent):
            done = self._open.pop()
            if done.anchor is not None:
                self._anchors[done.anchor] = done.data
            if done.path in self.flow:
                self._end(done.path, event)
        elif isinstance(event, ScalarEvent | AliasEvent | CollectionStartEvent):
            self._node(event)

    def _node(self, event: ScalarEvent | AliasEvent | CollectionStartEvent) -> None:
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.data, dict) and parent.key is None:
            self._mapping_key(parent, event)
            return
        path: Path = ()
        if parent is not None:
            path = (*parent.path, len(parent.data) if isinstance(parent.data, list) else parent.key or "")
        self.values[path] = _position(event)
        value: Plain
        if isinstance(event, ScalarEvent):
            value = None if not event.style and event.value in _NULLS else event.value
            if event.anchor is not None:
                self._anchors[event.anchor] = value
            self._end(path, event)
        elif isinstance(event, AliasEvent):
            self._end(path, event)
            value = self._anchors.get(event.anchor)
            if event.anchor not in self._anchors:
                self._problem(path, f'unknown anchor "{event.anchor}"', "write the value out", event)
        else:
            value = [] if isinstance(event, SequenceStartEvent) else {}
            if event.flow_style:
                self.flow.add(path)
            self._open.append(_Collection(value, path, event.anchor))
            if len(self._open) > _MAX_DEPTH:
                # Stop here: the parser takes quadratic time for deep nesting.
                self._problem(path[:1], "nested too deeply", f"use at most {_MAX_DEPTH} levels", event)
                raise DocumentError(self.problems)
        if parent is None:
            self.root = value
        elif isinstance(parent.data, list):
            parent.data.append(value)
        else:
            assert parent.key is not None
            # The first of two equal keys counts; the second has been reported.
            parent.data.setdefault(parent.key, value)
            parent.key = None

    def _mapping_key(self, parent: _Collection, event: ScalarEvent | AliasEvent | CollectionStartEvent) -> None:
        if not isinstance(event, ScalarEvent):
            self._problem(parent.path, "a key must be plain text", "use a field's name as key", event)
            parent.key = ""
            self._dropped = int(isinstance(event, CollectionStartEvent))
            return
        path = (*parent.path, event.value)
        if path in self.keys and event.value in parent.data:
            what = f'duplicate key "{event.value}", first used in line {self.keys[path].line}'
            self._problem(path, what, "keep one of the two", event)
        self.keys.setdefault(path, _position(event))
        parent.key = event.value

    def _end(self, path: Path, event: Event) -> None:
        """Record the end of a value, which is also the end, so far, of the collections around it.

        The parser reports the end of a block collection too late, after comments and blank lines.
        """
        end = Position(event.end_mark.line + 1, event.end_mark.column + 1)
        self.ends[path] = end
        for outer in self._open:
            self.ends[outer.path] = end

    def _problem(self, path: Path, what: str, fix: str, event: Event) -> None:
        self.problems.append(Problem(path, what, fix, _position(event)))


def _position(event: Event) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)

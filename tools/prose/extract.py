# SPDX-License-Identifier: Apache-2.0
"""Extraction of prose from source files: Markdown text, comments and docstrings, each with its line number."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HASH_SUFFIXES = frozenset({".toml", ".yaml", ".yml", ".sh"})
HASH_NAMES = frozenset({"Makefile"})

# Comments for tools, which are not prose.
_DIRECTIVE = re.compile(
    r"^\s*(noqa|type:|pragma|fmt:|ruff:|mypy:|clang-format|SPDX-|Copyright|vale|!|rustfmt|hash=)", re.IGNORECASE
)

_C_TOKEN = re.compile(
    r"""
      (?P<raw>   b?r(?P<hashes>\#*)".*?"(?P=hashes) )
    | (?P<string> b?"(?:\\.|[^"\\])*" )
    | (?P<char>  b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|.)|[^'\\\n])' )
    | (?P<line>  //[^\n]* )
    | (?P<block> /\*.*?\*/ )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of prose: its text, where it stands, and whether it continues the paragraph of the line before it."""

    number: int
    text: str
    continues: bool


def prose(path: Path, source: str) -> list[Line]:
    """Return the prose of a file. A file of an unknown kind has none."""
    extract = _extractor(path)
    return list(extract(source)) if extract else []


def strings(path: Path, source: str) -> Iterator[Line]:
    """Return the string literals of Python and Rust that are not docstrings: they may be messages to users."""
    if path.suffix == ".py" or "python" in _interpreter(path):
        tree = ast.parse(source)
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield Line(node.lineno, node.value, continues=False)
    elif path.suffix == ".rs":
        for match in _C_TOKEN.finditer(source):
            if match["raw"] or match["string"]:
                yield Line(source.count("\n", 0, match.start()) + 1, match[0], continues=False)


def has_prose(path: Path) -> bool:
    """Return whether files of this kind contain prose."""
    return _extractor(path) is not None


def _interpreter(path: Path) -> str:
    """Return the first line of a script without a suffix, or an empty string."""
    if path.suffix or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.readline(80).decode(errors="replace") if file.read(2) == b"#!" else ""


def _extractor(path: Path) -> Callable[[str], Iterator[Line]] | None:
    interpreter = _interpreter(path)
    if path.suffix == ".md":
        return _markdown
    if path.suffix == ".py" or "python" in interpreter:
        return _python
    if interpreter:
        return _hash_comments
    if path.suffix in {".rs", ".p4", ".c", ".h", ".cc", ".go", ".proto", ".mjs"}:
        return _c_family
    if path.suffix in HASH_SUFFIXES or path.name in HASH_NAMES:
        return _hash_comments
    return None


def _markdown(source: str) -> Iterator[Line]:
    for number, text in enumerate(source.splitlines(), 1):
        yield Line(number, text, continues=True)


def _python(source: str) -> Iterator[Line]:
    found = [*_python_comments(source), *_docstrings(source)]
    yield from sorted(found, key=lambda line: line.number)


def _python_comments(source: str) -> Iterator[Line]:
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = token.string.lstrip("#").removeprefix(":").strip()
        if _DIRECTIVE.match(text):
            continue
        row, column = token.start
        stands_alone = not token.line[:column].strip()
        yield Line(row, text, continues=stands_alone and last == row - 1)
        last = row if stands_alone else -1


def _docstrings(source: str) -> Iterator[Line]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines = node.value.value.splitlines()
            margin = min((len(text) - len(text.lstrip()) for text in lines[1:] if text.strip()), default=0)
            for i, text in enumerate(lines):
                yield Line(node.lineno + i, text.strip() if i == 0 else text[margin:], continues=i > 0)


def _c_family(source: str) -> Iterator[Line]:
    last = -1
    for match in _C_TOKEN.finditer(source):
        if match["line"]:
            row = source.count("\n", 0, match.start()) + 1
            text = re.sub(r"^//[/!]?", "", match["line"])
            if _DIRECTIVE.match(text):
                continue
            stands_alone = not source[source.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
            yield Line(row, text.removeprefix(" "), continues=stands_alone and last == row - 1)
            last = row if stands_alone else -1
        elif match["block"]:
            row = source.count("\n", 0, match.start()) + 1
            for i, text in enumerate(match["block"][2:-2].splitlines()):
                yield Line(row + i, re.sub(r"^\s*\*+ ?", "", text).strip(), continues=i > 0)


def _hash_comments(source: str) -> Iterator[Line]:
    last = -1
    for number, raw in enumerate(source.splitlines(), 1):
        match = re.search(r"(?:^|\s)#+ (?P<text>.*)$", raw)
        if not match or _DIRECTIVE.match(match["text"]) or re.search(r"""["'][^"']*\s# """, raw):
            continue
        stands_alone = not raw[: match.start()].strip()
        yield Line(number, match["text"], continues=stands_alone and last == number - 1)
        last = number if stands_alone else -1

# SPDX-License-Identifier: Apache-2.0
"""Validation errors of pydantic, as problems for the author of a configuration file."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from frontage.config.document import Document, Path, Problem
from frontage.fields import Model

_Fields = dict[tuple[str, ...], FieldInfo]


def explain(error: ValidationError, document: Document, schema: type[BaseModel]) -> list[Problem]:
    """Return a problem, with position and fix, for everything in ``document`` that ``schema`` rejected."""
    details = error.errors(include_url=False, include_input=True)
    fields, renamed = _fields(schema)
    return [_explain(detail, document, fields, renamed) for detail in details if not _spurious(detail)]


def _spurious(detail: ErrorDetails) -> bool:
    """Return whether the error only repeats others: pydantic counts the valid items of a list alone."""
    given = detail["input"]
    return detail["type"] == "too_short" and isinstance(given, list) and len(given) >= detail.get("ctx", {}).get("min_length", 0)


@cache
def _fields(schema: type[BaseModel]) -> tuple[_Fields, dict[tuple[str, ...], str]]:
    """Return every field of the schema and the new name of every renamed field, by path without list indices.

    The fields of a union's member are listed below the member's tag, too.
    """
    found: _Fields = {}
    renamed: dict[tuple[str, ...], str] = {}

    def visit(model: type[BaseModel], prefix: tuple[str, ...]) -> None:
        if issubclass(model, Model):
            renamed.update({(*prefix, old): new for old, new in model.RENAMED.items()})
        for name, field in model.model_fields.items():
            path = (*prefix, field.alias or name)
            found[path] = field
            for part in (field.annotation, *typing.get_args(field.annotation)):
                if isinstance(part, type) and issubclass(part, BaseModel):
                    visit(part, path)
                    if isinstance(field.discriminator, str):
                        for tag in typing.get_args(part.model_fields[field.discriminator].annotation):
                            visit(part, (*path, tag))

    visit(schema, ())
    return found, renamed


_WHAT = {
    "missing": "missing",
    "int_parsing": "invalid integer {input}",
    "int_type": "must be an integer",
    "float_parsing": "invalid number {input}",
    "bool_parsing": "invalid truth value {input}",
    "string_type": "must be text",
    "string_pattern_mismatch": "invalid value {input}",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping of fields",
    "greater_than_equal": "{input} is below the minimum of {ge}",
    "less_than_equal": "{input} is above the maximum of {le}",
    "greater_than": "{input} must be greater than {gt}",
    "less_than": "{input} must be less than {lt}",
    "too_short": "has {actual_length} items, needs at least {min_length}",
    "too_long": "has {actual_length} items, at most {max_length} are allowed",
    "string_too_short": "must not be empty",
    "enum": "unknown {field} {input}",
}


def _explain(
    detail: ErrorDetails, document: Document, fields: Mapping[tuple[str, ...], FieldInfo], renamed: Mapping[tuple[str, ...], str]
) -> Problem:
    path, names = _location(detail, fields)
    if detail["type"] == "extra_forbidden":
        return _unknown_key(path, names, document, fields, renamed)
    field = fields.get(names)
    what = _what(detail, path, names)
    if field is None:
        return Problem(path, what, "see the example configuration", document.position(path))
    if detail["type"] == "enum":
        return Problem(path, what, f"use {field.description}", document.position(path))
    example = f", for example {field.examples[0]}" if field.examples else ""
    verb = "add" if detail["type"] == "missing" else "give"
    return Problem(path, what, f"{verb} {field.description}{example}", document.position(path))


def _location(detail: ErrorDetails, fields: Mapping[tuple[str, ...], FieldInfo]) -> tuple[Path, tuple[str, ...]]:
    """Return the path of the error in the file, and the same without list indices.

    Pydantic puts the name of a union's member into the path; the file has no such level.
    """
    path: Path = ()
    names: tuple[str, ...] = ()
    for part in detail["loc"]:
        if isinstance(part, str):
            names = (*names, part)
            if names not in fields:
                if any(known[: len(names)] == names for known in fields):
                    continue
                if detail["type"] != "extra_forbidden":
                    names = names[:-1]
                    break
        path = (*path, part)
    return path, names


def _unknown_key(
    path: Path,
    names: tuple[str, ...],
    document: Document,
    fields: Mapping[tuple[str, ...], FieldInfo],
    renamed: Mapping[tuple[str, ...], str],
) -> Problem:
    if names in renamed:
        fix = f'renamed to "{renamed[names]}"'
    else:
        siblings = [known[-1] for known in fields if known[:-1] == names[:-1]]
        fix = f"remove it or use one of: {', '.join(siblings)}"
    return Problem(path, f'unknown key "{names[-1]}"', fix, document.key_position(path))


def _what(detail: ErrorDetails, path: Path, names: tuple[str, ...]) -> str:
    given = detail["input"]
    # Secrets must not end up in logs.
    is_scalar = isinstance(given, str | int | float) and path[-1:] != ("secret",)
    shown = f'"{given}"' if is_scalar and isinstance(given, str) else str(given) if is_scalar else "value"
    context = {key: value for key, value in detail.get("ctx", {}).items() if key != "error"}
    template = _WHAT.get(detail["type"])
    if template is not None:
        return template.format(input=shown, field=names[-1].replace("_", " ") if names else "value", **context)
    if detail["type"] == "value_error":
        return str(detail.get("ctx", {}).get("error", "")).replace("{}", shown)
    message = detail["msg"].removeprefix("Value ").removeprefix("Input ").removeprefix("value ")
    return f"{shown} {message}"

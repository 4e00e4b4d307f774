"""Pydantic's complaints about a configuration, in words for the person who wrote the file."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from frontage.config.document import Document, Path, Problem


def explain(error: ValidationError, document: Document, schema: type[BaseModel]) -> list[Problem]:
    """What is wrong, where, and the fix, of everything that ``schema`` did not accept in ``document``."""
    details = error.errors(include_url=False, include_input=True)
    fields = _fields(schema)
    return [_explain(detail, document, fields) for detail in details if not _spurious(detail)]


def _spurious(detail: ErrorDetails) -> bool:
    """Pydantic counts only the valid items of a list; its complaint about their number is noise beside those about the items."""
    given = detail["input"]
    return detail["type"] == "too_short" and isinstance(given, list) and len(given) >= detail.get("ctx", {}).get("min_length", 0)


@cache
def _fields(schema: type[BaseModel]) -> dict[tuple[str, ...], FieldInfo]:
    """Every field of the schema by its path without list indices; those of a union's member also below the member's tag."""
    found: dict[tuple[str, ...], FieldInfo] = {}

    def visit(model: type[BaseModel], prefix: tuple[str, ...]) -> None:
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
    return found


_WHAT = {
    "missing": "is missing",
    "extra_forbidden": "is no field of the configuration",
    "int_parsing": "{input} is not a whole number",
    "int_type": "is not a whole number",
    "float_parsing": "{input} is not a number",
    "string_type": "is not text",
    "string_pattern_mismatch": "{input} is not acceptable",
    "tuple_type": "is not a list",
    "model_type": "is not a mapping of fields",
    "greater_than_equal": "{input} is smaller than {ge}",
    "less_than_equal": "{input} is larger than {le}",
    "less_than": "{input} is not smaller than {lt}",
    "too_short": "has {actual_length} items, at least {min_length} needed",
    "too_long": "has {actual_length} items, at most {max_length} possible",
    "string_too_short": "is empty",
    "enum": "{input} is not one of {expected}",
}


def _explain(detail: ErrorDetails, document: Document, fields: Mapping[tuple[str, ...], FieldInfo]) -> Problem:
    """Turn one of pydantic's errors into what is wrong, where, and the fix."""
    # Pydantic puts the name of a union's member into the path; the file has no such level.
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
    field = fields.get(names)
    given = detail["input"]
    # Secrets must not end up in logs.
    shown = repr(given) if isinstance(given, str | int | float) and path[-1:] != ("secret",) else "this"
    context = {key: value for key, value in detail.get("ctx", {}).items() if key != "error"}
    template = _WHAT.get(detail["type"])
    if template is not None:
        what = template.format(input=shown, **context)
    elif detail["type"] == "value_error":
        reason = str(detail.get("ctx", {}).get("error", ""))
        what = f"{shown} is {reason}" if isinstance(given, str) else reason
    else:
        message = detail["msg"].removeprefix("Value ").removeprefix("Input ").removeprefix("value ")
        what = f"{shown} {message}"

    if detail["type"] == "extra_forbidden":
        siblings = [known[-1] for known in fields if known[:-1] == names[:-1]]
        fix = f"remove it or use one of: {', '.join(siblings)}"
        return Problem(path, what, fix, document.key_position(path))
    if field is None:
        return Problem(path, what, "see the example configuration", document.position(path))
    example = f", for example {field.examples[0]}" if field.examples else ""
    verb = "add" if detail["type"] == "missing" else "give"
    return Problem(path, what, f"{verb} {field.description}{example}", document.position(path))

# SPDX-License-Identifier: Apache-2.0
"""The log of the controller on standard error: text for people, or one JSON object per line for log collectors.

Each line contains the fields of its context (the correlation id, the switch) and of the event, which callers pass with `fields`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

from frontage.observe import causes

_FIELDS = "frontage_fields"
"""The attribute of a log record that contains its fields."""
_context: ContextVar[Mapping[str, Any]] = ContextVar("log_fields", default={})  # noqa: B039 - it is never changed


class Format(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


def fields(**values: Any) -> dict[str, dict[str, Any]]:
    """Return the argument ``extra`` of a log call, which adds these fields to the line. Omits None."""
    return {_FIELDS: {name: value for name, value in values.items() if value is not None}}


@contextmanager
def with_fields(**values: Any) -> Iterator[None]:
    """Add these fields to all log lines of the enclosed work."""
    token = _context.set({**_context.get(), **values})
    try:
        yield
    finally:
        _context.reset(token)


def configure(form: Format, *, verbose: bool, stream: TextIO | None = None) -> None:
    """Write the log of this process in a format."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(_add_fields)
    handler.setFormatter(_JsonFormatter() if form is Format.JSON else _TextFormatter())
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    # These libraries log much at lower levels that does not concern the controller.
    for name in ("asyncio", "httpcore", "httpx", "urllib3"):
        logging.getLogger(name).setLevel(logging.INFO if name == "asyncio" else logging.WARNING)


def _add_fields(record: logging.LogRecord) -> bool:
    """Add the fields of the context to a record."""
    cause = causes.current()
    origin = {} if cause is None else {"request_id": cause.request_id, "trace_id": cause.trace_id}
    record.__dict__[_FIELDS] = {**origin, **_context.get(), **record.__dict__.get(_FIELDS, {})}
    return True


class _JsonFormatter(logging.Formatter):
    """One object per line. `time` is ISO 8601, UTC."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **record.__dict__[_FIELDS],
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class _TextFormatter(logging.Formatter):
    """The message, followed by the fields as name=value in brackets. A trace id that equals the request id is omitted."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the base class
        found = dict(record.__dict__[_FIELDS])
        if found.get("trace_id") == found.get("request_id"):
            found.pop("trace_id", None)
        line = super().formatMessage(record)
        shown = " ".join(f"{name}={_text(value)}" for name, value in found.items())
        return f"{line} [{shown}]" if shown else line


def _text(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return json.dumps(text) if " " in text or '"' in text else text

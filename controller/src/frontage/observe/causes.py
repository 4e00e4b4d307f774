# SPDX-License-Identifier: Apache-2.0
"""The cause of the current work: an API request, an edit of the file, or an event such as a failed health check.

The cause is a context variable. Tasks and threads that the work starts inherit it, so their log lines, journal entries and spans
carry the id of the request.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from frontage.observe import tracing

_REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")
"""Request ids that the controller accepts from clients: without spaces and quotes, so that a log line remains a single line."""
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
"""W3C Trace Context, section 3.2: version, trace id, parent id and flags."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of work."""

    request_id: str
    """The correlation id, or several ids, separated by commas, if several requests caused the work."""
    trace_id: str
    """32 hexadecimal digits (W3C Trace Context, section 3.2.2.3)."""
    links: tuple[tracing.Context, ...] = field(default=(), repr=False, compare=False)
    """The spans that requested the work, the newest last."""


_current: ContextVar[Cause | None] = ContextVar("cause", default=None)


def current() -> Cause | None:
    """Return the cause of the current work; None if it has none."""
    return _current.get()


def request_id() -> str | None:
    """Return the correlation id of the current work."""
    cause = _current.get()
    return None if cause is None else cause.request_id


def trace_id() -> str | None:
    """Return the trace id of the current work."""
    cause = _current.get()
    return None if cause is None else cause.trace_id


def new(headers: Mapping[str, str] | None = None) -> Cause:
    """Return the cause in the headers `X-Request-ID` and `traceparent` of a request, or a new one. Ignores invalid headers."""
    headers = headers or {}
    wanted = headers.get("x-request-id", "")
    found = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    trace_id = found[1] if found is not None and is_trace_id(found[1]) and found[2].strip("0") else None
    identifier = wanted if _REQUEST_ID.fullmatch(wanted) else trace_id or secrets.token_hex(16)
    return Cause(identifier, trace_id or (identifier if is_trace_id(identifier) else secrets.token_hex(16)))


def is_trace_id(text: str) -> bool:
    """Return whether a text is a valid trace id. One of zeros only is not."""
    return _TRACE_ID.fullmatch(text) is not None and text.strip("0") != ""


@contextmanager
def caused_by(cause: Cause) -> Iterator[Cause]:
    """Do the work in this context because of ``cause``."""
    token = _current.set(cause)
    try:
        yield cause
    finally:
        _current.reset(token)


@contextmanager
def some_cause() -> Iterator[Cause]:
    """Keep the cause of the current work, or begin work with a new one."""
    cause = _current.get()
    if cause is not None:
        yield cause
    else:
        with caused_by(new()) as cause:
            yield cause


class Pending:
    """The causes of work that one task requests and another one does later, such as the installation of a change."""

    def __init__(self) -> None:
        self._causes: list[Cause] = []

    def add(self) -> None:
        """Remember the current cause."""
        cause = _current.get()
        if cause is not None:
            self._causes.append(replace(cause, links=tracing.here()))

    @contextmanager
    def resumed(self) -> Iterator[Cause]:
        """Do the requested work. If it fails, the next attempt has the same causes."""
        causes, self._causes = self._causes, []
        try:
            with caused_by(_joined(causes)) as cause, tracing.inside(cause.links):
                yield cause
        except BaseException:
            self._causes = causes + self._causes
            raise


def _joined(causes: list[Cause]) -> Cause:
    if not causes:
        return new()
    ids = ",".join(dict.fromkeys(cause.request_id for cause in causes))
    return Cause(ids, causes[-1].trace_id, tuple(link for cause in causes for link in cause.links))

"""What the record store refuses, each with the HTTP status and the code that a client tells it by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar


class RecordError(Exception):
    """What was not done, and what to do about it. Nothing has been changed, unless a subclass says otherwise."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"


class RequestError(RecordError):
    """The request itself is malformed."""

    status = 400
    code = "bad_request"


class GuidError(RecordError):
    status = 400
    code = "bad_guid"


class DocumentError(RecordError):
    status = 400
    code = "bad_document"


class SizeError(RecordError):
    status = 413
    code = "too_large"


class StampError(RecordError):
    """A client's clock is wrong."""

    status = 422
    code = "bad_stamp"


class NoOrderError(RecordError):
    """Compare-and-put of a record whose writes have no order."""

    status = 400
    code = "no_order"


class AuthenticationError(RecordError):
    """Nobody who is known asks."""

    status = 401
    code = "unauthorized"


class ForbiddenError(RecordError):
    """Who asks may not do this."""

    status = 403
    code = "forbidden"


class NotFoundError(RecordError):
    status = 404
    code = "not_found"


class ConsistencyError(RecordError):
    """The record exists with another consistency."""

    status = 409
    code = "other_consistency"


class VersionError(RecordError):
    """Compare-and-put: the record has another version."""

    status = 412
    code = "other_version"


class SiteError(RecordError):
    """A site that is not among those that keep records."""

    status = 422
    code = "unknown_site"


class EngineError(RecordError):
    """The engine is down, or what it has stored cannot be read."""

    status = 503
    code = "engine_unavailable"


class ContentionError(RecordError):
    """Others wrote first, each time that this was tried."""

    status = 503
    code = "contention"


class OutcomeUnknownError(RecordError):
    """The engine did not answer in time: the write may be done, or be done yet. Read the record to see."""

    status = 504
    code = "outcome_unknown"


def kinds() -> Iterator[type[RecordError]]:
    yield RecordError
    yield from RecordError.__subclasses__()


BY_CODE = {kind.code: kind for kind in kinds()}


def raised(problem: Mapping[str, Any]) -> RecordError:
    """What a server's problem was, where it was: of its ``error``, a code, and its ``message``."""
    return BY_CODE.get(str(problem.get("error")), RecordError)(str(problem.get("message")))

# SPDX-License-Identifier: Apache-2.0
"""The errors of the record store, each with its HTTP status and the code by which clients identify it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar


class RecordError(Exception):
    """An operation failed. Nothing has changed, unless a subclass says otherwise."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"


class RequestError(RecordError):
    """The request itself is malformed."""

    status = 400
    code = "bad_request"


class GuidError(RecordError):
    """The GUID is invalid."""

    status = 400
    code = "bad_guid"


class DocumentError(RecordError):
    """The document is invalid."""

    status = 400
    code = "bad_document"


class SizeError(RecordError):
    """The document is too large."""

    status = 413
    code = "too_large"


class StampError(RecordError):
    """The stamp is outside the accepted range: the client's clock is wrong."""

    status = 422
    code = "bad_stamp"


class NoOrderError(RecordError):
    """Compare-and-put of an eventual record, whose writes have no order."""

    status = 400
    code = "no_order"


class MergeError(RecordError):
    """The method does not match the record: PATCH is for counters, sets and maps, PUT for all other records."""

    status = 409
    code = "other_method"


class AuthenticationError(RecordError):
    """The request has no valid token."""

    status = 401
    code = "unauthorized"


class ForbiddenError(RecordError):
    """The token does not permit the request."""

    status = 403
    code = "forbidden"


class NotFoundError(RecordError):
    """The record does not exist."""

    status = 404
    code = "not_found"


class ConsistencyError(RecordError):
    """The record exists with another consistency model."""

    status = 409
    code = "other_consistency"


class VersionError(RecordError):
    """Compare-and-put: the record has another version."""

    status = 412
    code = "other_version"


class SiteError(RecordError):
    """The site does not keep records."""

    status = 422
    code = "unknown_site"


class EngineError(RecordError):
    """The engine is unavailable, or its data cannot be read."""

    status = 503
    code = "engine_unavailable"


class ContentionError(RecordError):
    """Other writers came first in every attempt."""

    status = 503
    code = "contention"


class OutcomeUnknownError(RecordError):
    """The engine did not answer in time: the write may have been done, or may still be. Read the record to find out."""

    status = 504
    code = "outcome_unknown"


def kinds() -> Iterator[type[RecordError]]:
    """Return all error classes."""
    yield RecordError
    yield from RecordError.__subclasses__()


BY_CODE = {kind.code: kind for kind in kinds()}


def from_problem(problem: Mapping[str, Any]) -> RecordError:
    """Return the error that a server's problem document describes by ``error``, a code, and ``message``."""
    return BY_CODE.get(str(problem.get("error")), RecordError)(str(problem.get("message")))

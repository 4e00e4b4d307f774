# SPDX-License-Identifier: Apache-2.0
"""Entity tags (RFC 9110, section 8.8.3): hashes of the content of responses."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from frontage.api.problems import PreconditionError


def etag(value: Any) -> str:
    """Return the entity tag of a JSON value or of a text."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def answer(request: Request, value: Any) -> Response:
    """Return a JSON value with its entity tag, or 304 if the client has it already."""
    tag = etag(value)
    if _matches(request.headers.get("If-None-Match"), tag):
        return Response(status_code=304, headers={"ETag": tag})
    return JSONResponse(value, headers={"ETag": tag})


def check(if_match: str | None, value: Any, what: str) -> None:
    """Raise PreconditionError if the header `If-Match` does not contain the entity tag of ``value``."""
    if if_match is not None and not _matches(if_match, etag(value)):
        raise PreconditionError(f"{what} has changed since you read it: read it again before you change it")


def _matches(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    tags = [part.strip().removeprefix("W/") for part in header.split(",")]
    return "*" in tags or tag in tags

# SPDX-License-Identifier: Apache-2.0
"""Errors of the HTTP API as problem details (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from frontage.changes.history import JournalError
from frontage.config import ConfigError
from frontage.config.document import Problem
from frontage.config.edit import EditError
from frontage.observe import causes
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError
from frontage.service.changes import NotInstalledError
from frontage.state.errors import ReconcileError

MEDIA_TYPE = "application/problem+json"


class ApiError(Exception):
    """A request is rejected; the message says why and what to do."""

    status: ClassVar[HTTPStatus] = HTTPStatus.BAD_REQUEST
    headers: ClassVar[dict[str, str]] = {}


class UnauthorizedError(ApiError):
    """The request has no valid token."""

    status = HTTPStatus.UNAUTHORIZED
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": "Bearer"}


class ForbiddenError(ApiError):
    """The role of the client does not permit the request."""

    status = HTTPStatus.FORBIDDEN


class NotFoundError(ApiError):
    """The object does not exist."""

    status = HTTPStatus.NOT_FOUND


class ConflictError(ApiError):
    """The state has changed since the plan, or the request contradicts it."""

    status = HTTPStatus.CONFLICT


class PreconditionError(ApiError):
    """`If-Match` does not match."""

    status = HTTPStatus.PRECONDITION_FAILED


class PreconditionRequiredError(ApiError):
    """The request needs `If-Match`."""

    status = HTTPStatus.PRECONDITION_REQUIRED


class UnprocessableError(ApiError):
    """The request is well-formed, but cannot be carried out."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class ChangedError(ApiError):
    """The file contains the change, but the switches do not."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class UnavailableError(ApiError):
    """The request needs a running controller, or a reachable switch."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Place(BaseModel):
    """A problem of a configuration."""

    line: int | None
    column: int | None
    path: list[str | int]
    what: str
    fix: str


class ProblemDetails(BaseModel):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="what is wrong, and what to do")
    problems: list[Place] = Field(default=[], description="the problems of a configuration, with their positions")
    changed: bool = Field(default=False, description="true if the file contains the change, but the switches do not")
    request_id: str | None = Field(default=None, description="the correlation id of the request in the controller's log")


def places(problems: list[Problem]) -> list[Place]:
    """Return the problems of a configuration as JSON values."""
    return [
        Place(
            line=problem.position.line if problem.position else None,
            column=problem.position.column if problem.position else None,
            path=list(problem.path),
            what=problem.what,
            fix=problem.fix,
        )
        for problem in problems
    ]


def answer(status: HTTPStatus, detail: str, headers: dict[str, str] | None = None, **more: Any) -> JSONResponse:
    """Return problem details."""
    body = ProblemDetails(title=status.phrase, status=status, detail=detail, request_id=causes.request_id(), **more)
    return JSONResponse(body.model_dump(), status, headers, MEDIA_TYPE)


def answer_api_error(error: ApiError) -> JSONResponse:
    """Return the answer to a rejected request."""
    return answer(error.status, str(error), error.headers, changed=isinstance(error, ChangedError))


async def _on_api_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return answer_api_error(error)


async def _on_config_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ConfigError)
    return answer(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), problems=places(error.problems))


async def _on_edit_error(_request: Request, error: Exception) -> JSONResponse:
    return answer(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


async def _on_unavailable(_request: Request, error: Exception) -> JSONResponse:
    return answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


async def _on_invalid_request(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    parts = (f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors())
    return answer(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(parts))


async def _on_http_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return answer(HTTPStatus(error.status_code), str(error.detail), dict(error.headers or {}))


def handle_errors(app: FastAPI) -> None:
    """Answer errors with problem details."""
    app.add_exception_handler(ApiError, _on_api_error)
    app.add_exception_handler(ConfigError, _on_config_error)
    app.add_exception_handler(EditError, _on_edit_error)
    for kind in (JournalError, NotInstalledError, SwitchError, PipelineError, ReconcileError):
        app.add_exception_handler(kind, _on_unavailable)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)


def responses(*kinds: type[ApiError]) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of the errors of a route, including those of all routes."""
    always: tuple[type[ApiError], ...] = (UnauthorizedError, ForbiddenError, UnprocessableError)
    statuses = {kind.status for kind in (*always, *kinds)}
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    return {int(status): {"description": status.phrase, "content": content} for status in sorted(statuses)}

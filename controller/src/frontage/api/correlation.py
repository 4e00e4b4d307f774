# SPDX-License-Identifier: Apache-2.0
"""The correlation id of requests: handles `X-Request-ID` and `traceparent`, and writes one log line and one span per request."""

from __future__ import annotations

import logging
import secrets
import time
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontage.api.forward import READS
from frontage.api.problems import answer
from frontage.observe import causes, tracing
from frontage.observe.causes import Cause
from frontage.observe.logs import fields

log = logging.getLogger(__name__)


class Correlate:
    """Middleware that gives each request a cause, and answers unexpected failures with problem details."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        attributes = {"http.request.method": method, "url.path": path}
        with (
            causes.caused_by(causes.new(headers)) as cause,
            tracing.server_span(f"{method} {path}", headers, request_id=cause.request_id, **attributes) as span,
        ):
            request = _Request(send, cause, span)
            started = time.monotonic()
            try:
                await self._app(scope, receive, request.send)
            except Exception as error:
                log.exception("%s %s failed", method, path)
                span.fail(error)
                if request.status is None:
                    detail = "internal error: see the controller's log"
                    await answer(HTTPStatus.INTERNAL_SERVER_ERROR, detail)(scope, receive, request.send)
            finally:
                span.set(**{"http.response.status_code": request.status})
                seconds = round(time.monotonic() - started, 6)
                log.log(
                    logging.DEBUG if method in READS else logging.INFO,
                    "%s %s: %s", method, path, request.status,
                    extra=fields(method=method, path=path, status=request.status, seconds=seconds),
                )  # fmt: skip


class _Request:
    """A request that is being answered."""

    def __init__(self, send: Send, cause: Cause, span: tracing.Span):
        self.status: int | None = None
        self._send = send
        self._cause = cause
        self._span = span

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._cause.request_id
            headers["traceparent"] = self._span.traceparent or f"00-{self._cause.trace_id}-{secrets.token_hex(8)}-00"
        await self._send(message)

# SPDX-License-Identifier: Apache-2.0
"""Forwards requests that only the leader can answer: changes, plans, operations, and keys of servers.

Each of several controllers accepts requests. A follower authenticates the client, and forwards the request through the store. With
a redirect, every client would have to reach the leader, trust its certificate, and have a token there; commands on the control
socket could not follow it at all.

The leader may fail before it answers. Every change therefore gets an `Idempotency-Key` if the client has not set one, so that the
next leader can receive it again without making the change twice.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
from fastapi import FastAPI, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from frontage.api.access import Authenticate, Caller, Role
from frontage.api.problems import ApiError, UnauthorizedError, answer_api_error
from frontage.changes.history import Author

READS = ("GET", "HEAD", "OPTIONS")
"""The methods that change nothing (RFC 9110, section 9.2.1)."""
_KEY = b"idempotency-key"
_CALLER = "frontage-caller"
_REQUEST_HEADERS = ("content-type", "idempotency-key", "if-match", "if-none-match", "prefer")
_ANSWER_HEADERS = ("cache-control", "content-type", "etag", "location")
_LOCAL = {"/v1/check"}
"""Paths of requests other than GET that every controller answers itself."""
_LEADER_READS = ("/v1/operations", "/v1/keys/file", "/v1/keys/holders")
_SERVER_KEYS = re.compile(r"/v1/servers/[^/]+/keys")
"""The path of a server's keys: only the leader knows which keys the switches have."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or an answer, between two controllers."""

    head: Mapping[str, Any]
    body: bytes

    def encode(self) -> bytes:
        """Return the message as bytes."""
        return json.dumps(self.head).encode() + b"\n" + zlib.compress(self.body)

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """Return the message in these bytes."""
        head, _, body = data.partition(b"\n")
        return cls(json.loads(head), zlib.decompress(body))


class Forwarder(Protocol):
    """Forwards requests to the leader."""

    @property
    def is_leading(self) -> bool:
        """True if this controller is the leader."""
        ...

    async def forward(self, request: Message) -> Message | None:
        """Return the leader's answer, or None if this controller is the leader now. Raises UnavailableError."""
        ...


class ToLeader:
    """The middleware that forwards requests."""

    def __init__(self, app: ASGIApp, forwarder: Forwarder, authenticate: Authenticate):
        self._app = app
        self._forwarder = forwarder
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http" or not is_for_leader(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        scope = _with_key(scope)
        if self._forwarder.is_leading:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        try:
            # In a thread, because it may query an identity provider or the user database.
            caller = await asyncio.to_thread(self._authenticate, request)
            found = await self._forwarder.forward(_message(request, caller, body))
        except ApiError as error:
            await answer_api_error(error)(scope, receive, send)
            return
        if found is None:
            await self._app(scope, _replay(body, receive), send)
            return
        response = Response(found.body, found.head["status"], found.head["headers"])
        await response(scope, receive, send)


def is_for_leader(method: str, path: str) -> bool:
    """Return whether only the leader can answer a request."""
    if method in READS:
        return path.startswith(_LEADER_READS) or _SERVER_KEYS.fullmatch(path) is not None
    return path.startswith("/v1/") and path not in _LOCAL


def by_message(request: Request) -> Caller:
    """Return the caller that another controller has authenticated. Only for the application of `answer`."""
    try:
        found = json.loads(request.headers[_CALLER])
        role = None if found["role"] is None else Role(found["role"])
        return Caller(Author(found["name"], found["origin"]), role, found["server"])
    except (KeyError, ValueError):
        raise UnauthorizedError("missing caller in the request of another controller") from None


async def answer(app: FastAPI, request: Message) -> Message:
    """Return the answer of an application that authenticates with `by_message`."""
    head = request.head
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://leader", timeout=None) as client:
        headers = {**head["headers"], _CALLER: json.dumps(head["caller"])}
        found = await client.request(head["method"], head["url"], headers=headers, content=request.body)
    kept = {name: found.headers[name] for name in _ANSWER_HEADERS if name in found.headers}
    return Message({"status": found.status_code, "headers": kept}, found.content)


def _message(request: Request, caller: Caller, body: bytes) -> Message:
    url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return Message(
        {
            "method": request.method,
            "url": url,
            "headers": {name: request.headers[name] for name in _REQUEST_HEADERS if name in request.headers},
            "caller": {
                "name": caller.author.name,
                "origin": caller.author.origin,
                "role": None if caller.role is None else str(caller.role),
                "server": caller.server,
            },
        },
        body,
    )


def _with_key(scope: Scope) -> Scope:
    """Return the request with an `Idempotency-Key` if it is a change without one."""
    if scope["method"] == "GET" or any(name == _KEY for name, _ in scope["headers"]):
        return scope
    return {**scope, "headers": [*scope["headers"], (_KEY, f"request-{secrets.token_hex(16)}".encode())]}


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that returns a request's body once more."""
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return pending.pop() if pending else await receive()

    return replay

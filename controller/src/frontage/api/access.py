# SPDX-License-Identifier: Apache-2.0
"""The roles of the clients of the HTTP API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from frontage.api.problems import ForbiddenError
from frontage.changes.history import Author
from frontage.service.changes import user_name
from frontage.tokens import Level


class Role(Level):
    """The role of a client. Each includes those before it."""

    VIEWER = "viewer"
    """Reads everything but secrets."""
    OPERATOR = "operator"
    """Changes servers, policies, switches and keys, and undoes changes."""
    ADMIN = "admin"
    """Replaces the configuration, which can make the controller run programs, and reads secrets."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that sends a request."""

    author: Author
    role: Role | None
    """None for the machine of a server."""
    server: str | None = None
    """The server whose machine sends the request."""


Authenticate = Callable[[Request], Caller]
"""A function that returns the sender of a request, or raises UnauthorizedError."""


def local(request: Request) -> Caller:
    """Return the user of the control socket, who has all permissions. The server passes the user's uid as the client's host."""
    uid = "0" if request.client is None else request.client.host
    return Caller(Author(user_name(int(uid)), "command"), Role.ADMIN)


def find_caller(request: Request) -> Caller:
    """Return the sender of a request. Raises UnauthorizedError."""
    authenticate: Authenticate = request.app.state.authenticate
    return authenticate(request)


def _require(role: Role) -> Callable[[Request], Caller]:
    def dependency(request: Request) -> Caller:
        caller = find_caller(request)
        if caller.role is None:
            raise ForbiddenError(
                f"the certificate of {caller.server} only permits fetching its keys: this request requires the role {role}"
            )
        if not caller.role.includes(role):
            raise ForbiddenError(f"the role {caller.role} does not permit this request: it requires {role}")
        return caller

    return dependency


Viewer = Annotated[Caller, Depends(_require(Role.VIEWER))]
Operator = Annotated[Caller, Depends(_require(Role.OPERATOR))]
Admin = Annotated[Caller, Depends(_require(Role.ADMIN))]

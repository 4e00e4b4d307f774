# SPDX-License-Identifier: Apache-2.0
"""Routes with which servers fetch and acknowledge cookie keys."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse

from frontage.api import models
from frontage.api.access import Caller, Viewer, find_caller
from frontage.api.problems import ForbiddenError, NotFoundError, UnavailableError, responses
from frontage.api.reading import backend_of
from frontage.service.key_holders import KeyHolders, NotPublishedError, key_servers

MAX_WAIT = 60.0
"""Seconds that a request may wait for new keys."""

router = APIRouter()


def _own_keys(name: str, caller: Annotated[Caller, Depends(find_caller)]) -> str:
    """Return the name of the server to which the caller's certificate belongs. Raises ForbiddenError."""
    if caller.server != name:
        raise ForbiddenError(f"these keys require the certificate of {name}: see api.certificates")
    return name


OwnServer = Annotated[str, Depends(_own_keys)]
Wait = Annotated[float, Query(ge=0, le=MAX_WAIT, description="the seconds to wait for a change")]


def _holders(request: Request, server: str | None = None) -> KeyHolders:
    backend = backend_of(request)
    if backend.key_holders is None:
        raise UnavailableError(f"no controller is running: run `frontage up {backend.changes.file}`")
    if server is not None and server not in key_servers(backend.config):
        raise NotFoundError(f'unknown server "{server}": correct api.certificates')
    return backend.key_holders


@router.get(
    "/servers/{name}/keys",
    response_class=PlainTextResponse,
    responses={304: {"description": "The keys are those of If-None-Match"}, **responses(NotFoundError, UnavailableError)},
)
async def get_server_keys(
    request: Request, name: OwnServer, wait: Wait = 0, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """Return the key file of a server, once all switches have the keys. Requires the certificate of the server."""
    holders = _holders(request, name)
    known = None if if_none_match is None else if_none_match.strip().strip('"')
    try:
        found = await holders.wait(name, known, wait)
    except NotPublishedError as error:
        raise UnavailableError(str(error)) from None
    headers = {"ETag": f'"{found.version}"', "Cache-Control": "no-store"}
    return Response(status_code=304, headers=headers) if found.version == known else PlainTextResponse(found.text, headers=headers)


@router.put("/servers/{name}/keys/held", response_model=models.HeldKey, responses=responses(NotFoundError, UnavailableError))
async def put_held_key(request: Request, name: OwnServer, held: models.HeldKey) -> Any:
    """Acknowledge that a server seals cookies with a key."""
    _holders(request, name).acknowledge(name, held.id)
    return held


@router.get("/keys/holders", response_model=models.KeyHolders, responses=responses(UnavailableError))
async def get_key_holders(request: Request, _caller: Viewer, wait: Wait = 0) -> Any:
    """Return the servers that have the newest key. Waits until all have it, or for the given time."""
    holders = _holders(request)
    keys = await asyncio.to_thread(lambda: backend_of(request).config.cookie_keys)
    late = await holders.wait_for_all(keys[-1].id, wait)
    return models.KeyHolders(newest=keys[-1].id, servers=holders.holders(), late=late)

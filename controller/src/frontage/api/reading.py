# SPDX-License-Identifier: Apache-2.0
"""Routes that read the state. Those with JSON bodies have entity tags."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, cast

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import IPvAnyAddress

from frontage.api import models
from frontage.api.access import Admin, Viewer
from frontage.api.backend import Backend
from frontage.api.described import Described, Descriptions, Objects
from frontage.api.etags import answer, etag
from frontage.api.events import Events
from frontage.api.problems import NotFoundError, UnavailableError, responses
from frontage.config.key_file import key_file
from frontage.config.vips import Policy, ServerState

router = APIRouter(tags=["read"])


def backend_of(request: Request) -> Backend:
    """Return the backend of a request."""
    return cast(Backend, request.app.state.backend)


def find(items: Objects, name: str, noun: str) -> dict[str, Any]:
    """Return the item with a name. Raises NotFoundError."""
    found = next((item for item in items if item["name"] == name), None)
    if found is None:
        names = ", ".join(item["name"] for item in items[:8]) or "none"
        raise NotFoundError(f'unknown {noun} "{name}": use one of: {names}')
    return found


async def described(request: Request) -> Described:
    """Return the objects of the configuration. A thread computes them, because a large configuration takes seconds to load."""
    backend, descriptions = backend_of(request), cast(Descriptions, request.app.state.descriptions)
    return await asyncio.to_thread(lambda: descriptions.of(backend.config))


@router.get("/status", response_model=dict[str, Any], responses=responses(UnavailableError))
async def get_status(request: Request, _caller: Viewer) -> Response:
    """Return the state of the switches compared with the configuration, and all counters."""
    return answer(request, await backend_of(request).status())


@router.get("/vips", response_model=list[models.Vip], responses=responses())
async def get_vips(request: Request, _caller: Viewer, policy: Annotated[Policy | None, Query()] = None) -> Response:
    """List the VIPs, optionally only those with a certain policy."""
    found = (await described(request)).vips
    return answer(request, [vip for vip in found if policy in (None, vip["policy"])])


@router.get("/vips/{name}", response_model=models.Vip, responses=responses(NotFoundError))
async def get_vip(request: Request, _caller: Viewer, name: str) -> Response:
    """Return a VIP."""
    return answer(request, find((await described(request)).vips, name, "VIP"))


@router.get("/servers", response_model=list[models.Server], responses=responses())
async def get_servers(
    request: Request,
    _caller: Viewer,
    vip: Annotated[str | None, Query()] = None,
    state: Annotated[ServerState | None, Query()] = None,
    zone: Annotated[str | None, Query()] = None,
) -> Response:
    """List the servers, optionally only those of a VIP, in a state, or in a zone."""
    wanted = {"vip": vip, "state": state, "zone": zone}
    found = (await described(request)).servers
    return answer(request, [server for server in found if all(value in (None, server[field]) for field, value in wanted.items())])


@router.get("/servers/{name}", response_model=models.Server, responses=responses(NotFoundError))
async def get_server(request: Request, _caller: Viewer, name: str) -> Response:
    """Return a server."""
    return answer(request, find((await described(request)).servers, name, "server"))


@router.get("/devices", response_model=list[models.Device], responses=responses())
async def get_devices(request: Request, _caller: Viewer) -> Response:
    """List the switches."""
    return answer(request, (await described(request)).devices)


@router.get("/devices/{name}", response_model=models.Device, responses=responses(NotFoundError))
async def get_device(request: Request, _caller: Viewer, name: str) -> Response:
    """Return a switch."""
    return answer(request, find((await described(request)).devices, name, "device"))


@router.get("/routes/{address}", response_model=list[models.Routes], responses=responses(UnavailableError))
async def get_routes(request: Request, _caller: Viewer, address: IPvAnyAddress) -> Response:
    """Return the route of each switch to an address, and the routes to it that the switch has learned."""
    return answer(request, backend_of(request).routes(address))


@router.get("/keys", response_model=list[models.Key], responses=responses())
async def get_keys(request: Request, _caller: Viewer) -> Response:
    """List the cookie keys, without their secrets."""
    return answer(request, (await described(request)).keys)


@router.get("/keys/file", response_class=PlainTextResponse, responses=responses(UnavailableError))
async def get_key_file(request: Request, _caller: Admin) -> Response:
    """Return the key file for QUIC servers, once the switches have the keys."""
    await backend_of(request).changes.installed()
    backend = backend_of(request)
    text = await asyncio.to_thread(lambda: key_file(backend.config))
    return PlainTextResponse(text, headers={"ETag": etag(text), "Cache-Control": "no-store"})


@router.get("/configuration", response_class=PlainTextResponse, responses=responses())
async def get_configuration(request: Request, _caller: Admin) -> Response:
    """Return the text of the configuration file, with its secrets."""
    text = await asyncio.to_thread(backend_of(request).changes.read)
    return PlainTextResponse(text, headers={"ETag": etag(text), "Cache-Control": "no-store"})


@router.get("/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}, **responses()})
async def get_events(request: Request, _caller: Viewer, last_event_id: Annotated[str | None, Header()] = None) -> Response:
    """Send events as they happen (server-sent events): `switch`, `server`, `configuration`, `operation`."""
    events = cast(Events, request.app.state.events)
    return StreamingResponse(events.stream(last_event_id), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

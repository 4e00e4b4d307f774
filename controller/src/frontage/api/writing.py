# SPDX-License-Identifier: Apache-2.0
"""Routes that change the configuration.

A change takes effect when the switches have it. Requests wait for that, unless they contain `Prefer: respond-async`: the operation
in the immediate response then shows the progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse

from frontage.api import models
from frontage.api.access import Admin, Caller, Operator, Viewer
from frontage.api.described import Described, Objects
from frontage.api.described import describe as objects_of
from frontage.api.etags import check as check_tag
from frontage.api.operations import Operation, Operations
from frontage.api.problems import (
    ChangedError,
    ConflictError,
    NotFoundError,
    PreconditionError,
    PreconditionRequiredError,
    UnavailableError,
    UnprocessableError,
    responses,
)
from frontage.api.reading import backend_of, described, find
from frontage.changes import verbs
from frontage.changes.verbs import Change
from frontage.config import loads
from frontage.service.changes import Check, NotInstalledError

router = APIRouter(tags=["change"])


class Options:
    """Headers of changes."""

    def __init__(
        self,
        if_match: Annotated[str | None, Header(description="the entity tag that the object must have")] = None,
        prefer: Annotated[str | None, Header(description="`respond-async`: return before the change is installed")] = None,
        idempotency_key: Annotated[
            str | None, Header(min_length=1, max_length=128, description="requests with the same key make a single change")
        ] = None,
    ):
        self.if_match, self.idempotency_key = if_match, idempotency_key
        self.is_async = prefer is not None and "respond-async" in prefer


WithOptions = Annotated[Options, Depends()]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of object that requests change."""

    noun: str
    objects: Callable[[Described], Objects]

    async def require(self, request: Request, name: str) -> None:
        """Raise NotFoundError if the object does not exist."""
        find(self.objects(await described(request)), name, self.noun)

    def unchanged(self, request: Request, name: str, options: Options) -> Check | None:
        """Return a check that an object of the file has the entity tag of `If-Match`."""
        if_match, file = options.if_match, backend_of(request).changes.file
        if if_match is None:
            return None
        what = f"the {self.noun} {name}"
        return lambda text: check_tag(if_match, find(self.objects(objects_of(loads(text, file))), name, self.noun), what)


_VIP = _Kind("VIP", lambda found: found.vips)
_SERVER = _Kind("server", lambda found: found.servers)
_DEVICE = _Kind("device", lambda found: found.devices)
_ERRORS = responses(NotFoundError, PreconditionError, UnprocessableError, UnavailableError)
_TEXT = {"requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}}
_ACCEPTED: dict[int | str, dict[str, Any]] = {202: {"model": models.Operation, "description": "The change is in progress"}}


def _operations_of(request: Request) -> Operations:
    return cast(Operations, request.app.state.operations)


def describe(operation: Operation) -> models.Operation:
    """Return an operation as a body."""
    done = operation.done
    return models.Operation(
        id=operation.id,
        verb=operation.verb,
        arguments=operation.arguments,
        state=operation.state,
        started=operation.started,
        number=None if done is None else done.number,
        changed=None if done is None else done.changed,
        installed=done is not None and done.is_installed,
        missing=[] if done is None else list(done.missing),
        error=operation.error,
    )


async def make(request: Request, caller: Caller, change: Change, options: Options, check: Check | None = None) -> Response:
    """Make a change and return its operation."""
    operation = _operations_of(request).submit(change, caller.author, check=check, idempotency_key=options.idempotency_key)
    location = {"Location": f"/v1/operations/{operation.id}"}
    if options.is_async:
        return JSONResponse(describe(operation).model_dump(mode="json"), 202, location)
    if operation.task is not None:
        # The change continues if the client disconnects.
        await asyncio.wait({operation.task})
        try:
            operation.task.result()
        except NotInstalledError as error:
            raise ChangedError(str(error)) from None
    elif operation.error is not None:
        raise ChangedError(operation.error)
    return JSONResponse(describe(operation).model_dump(mode="json"), 200, location)


@router.patch("/vips/{name}", response_model=models.Operation, responses={**_ACCEPTED, **_ERRORS})
async def patch_vip(request: Request, caller: Operator, name: str, patch: models.VipPatch, options: WithOptions) -> Response:
    """Change the policy of a VIP, or its alpha. It applies to new connections."""
    await _VIP.require(request, name)
    change = verbs.set_policy(name, patch.policy, patch.alpha)
    return await make(request, caller, change, options, _VIP.unchanged(request, name, options))


@router.post("/servers", response_model=models.Operation, responses={**_ACCEPTED, **_ERRORS})
async def post_server(request: Request, caller: Operator, server: models.NewServer, options: WithOptions) -> Response:
    """Add a server to a VIP. Established connections keep their servers."""
    return await make(request, caller, verbs.add_server(**server.model_dump()), options)


@router.patch("/servers/{name}", response_model=models.Operation, responses={**_ACCEPTED, **_ERRORS})
async def patch_server(request: Request, caller: Operator, name: str, patch: models.ServerPatch, options: WithOptions) -> Response:
    """Drain a server, make it active again, or change its weight. Established connections continue."""
    await _SERVER.require(request, name)
    change = verbs.set_server(name, state=patch.state, weight=patch.weight)
    return await make(request, caller, change, options, _SERVER.unchanged(request, name, options))


@router.delete("/servers/{name}", response_model=models.Operation, responses={**_ACCEPTED, **_ERRORS})
async def delete_server(request: Request, caller: Operator, name: str, options: WithOptions) -> Response:
    """Remove a server. This breaks its connections: drain the server first, and wait until they have ended."""
    if options.idempotency_key is None:  # otherwise, an earlier request with this key may have removed it
        await _SERVER.require(request, name)
    return await make(request, caller, verbs.remove_server(name), options, _SERVER.unchanged(request, name, options))


@router.patch("/devices/{name}", response_model=models.Operation, responses={**_ACCEPTED, **_ERRORS})
async def patch_device(request: Request, caller: Operator, name: str, patch: models.DevicePatch, options: WithOptions) -> Response:
    """Withdraw the routes through a switch, or announce them again. `packets_to_vips` in the status shows the traffic."""
    await _DEVICE.require(request, name)
    change = verbs.set_device_state(name, patch.state)
    return await make(request, caller, change, options, _DEVICE.unchanged(request, name, options))


@router.post("/keys", response_model=models.Operation, responses={**_ACCEPTED, **_ERRORS, **responses(ConflictError)})
async def post_key(
    request: Request,
    caller: Operator,
    options: WithOptions,
    force: Annotated[bool, Query(description="rotate even if servers do not have the newest key")] = False,
) -> Response:
    """Seal cookies with a new key. Only the previous key remains valid, so all servers must have it first."""
    backend = backend_of(request)
    if backend.key_holders is not None and not force:
        keys = await asyncio.to_thread(lambda: backend.config.cookie_keys)
        if late := backend.key_holders.late(keys[-1].id):
            what = f"servers that do not have key {keys[-1].id} yet: {', '.join(late)}: the rotation would remove their current key"
            raise ConflictError(f"{what}: see GET /v1/keys/holders, or force the rotation")
    folder = backend.changes.file.resolve().parent
    return await make(request, caller, verbs.rotate_key(folder), options)


@router.put(
    "/configuration",
    response_model=models.Operation,
    responses={**_ACCEPTED, **responses(PreconditionRequiredError), **_ERRORS},
    openapi_extra=_TEXT,
)
async def put_configuration(request: Request, caller: Admin, options: WithOptions) -> Response:
    """Replace the configuration. The body is its text; `If-Match` is required, and `*` matches every configuration."""
    if options.if_match is None:
        raise PreconditionRequiredError("missing header If-Match: send the ETag of GET /v1/configuration, or *")
    change = verbs.replace(_decoded(await request.body()), "api")
    return await make(request, caller, change, options, lambda before: check_tag(options.if_match, before, "the configuration"))


@router.post("/check", response_model=models.Checked, responses=responses(UnprocessableError), openapi_extra=_TEXT)
async def post_check(request: Request, _caller: Viewer) -> Any:
    """Check the text of a configuration without installing it. Paths in it are relative to the controller's file."""
    text = _decoded(await request.body())
    found = await asyncio.to_thread(loads, text, backend_of(request).changes.file)
    return models.Checked(vips=len(found.vips), servers=len(found.servers))


@router.post("/installation", response_model=models.Installed, responses=responses(UnavailableError))
async def post_installation(request: Request, _caller: Operator) -> Any:
    """Reload the configuration file, and wait until the switches have it."""
    missing = await backend_of(request).changes.installed()
    if missing is None:
        raise UnavailableError(f"no controller is running: run `frontage up {backend_of(request).changes.file}`")
    return models.Installed(missing=missing)


@router.get("/operations", response_model=list[models.Operation], responses=responses())
async def get_operations(request: Request, _caller: Viewer) -> Any:
    """List the last operations."""
    return [describe(operation) for operation in _operations_of(request).all()]


@router.get("/operations/{identifier}", response_model=models.Operation, responses=responses(NotFoundError))
async def get_operation(request: Request, _caller: Viewer, identifier: str) -> Any:
    """Return an operation, with its progress."""
    operation = _operations_of(request).find(identifier)
    if operation is None:
        raise NotFoundError(f'unknown operation "{identifier}": see GET /v1/history')
    return describe(operation)


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise UnprocessableError(f"the body is not UTF-8: {error}") from None

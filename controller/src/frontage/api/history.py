# SPDX-License-Identifier: Apache-2.0
"""Routes for the journal: the changes, and undo."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter

from frontage.api import models
from frontage.api.access import Operator, Viewer
from frontage.api.plans import describe_steps
from frontage.api.problems import NotFoundError, UnavailableError, UnprocessableError, responses
from frontage.api.reading import backend_of
from frontage.api.writing import WithOptions, make
from frontage.changes import plan, verbs
from frontage.changes.history import Entry
from frontage.config import ConfigError, loads
from frontage.service.changes import describe

router = APIRouter(tags=["history"])

Number = Annotated[int, PathParameter(ge=1, le=1 << 53)]


@router.get("/history", response_model=list[models.Change], responses=responses(UnavailableError))
async def get_history(
    request: Request,
    _caller: Viewer,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    before: Annotated[int | None, Query(ge=1, le=1 << 53, description="only changes with smaller numbers")] = None,
    author: Annotated[str | None, Query()] = None,
) -> Any:
    """List changes, the newest first."""
    entries = await asyncio.to_thread(backend_of(request).changes.journal.entries)
    chosen = [e for e in reversed(entries) if (before is None or e.number < before) and author in (None, e.author)]
    return [describe(entry) for entry in chosen[:limit]]


@router.get("/history/{number}", response_model=models.ChangeWithSteps, responses=responses(NotFoundError, UnavailableError))
async def get_change(request: Request, _caller: Viewer, number: Number) -> Any:
    """Return a change, with the objects that it changed."""
    changes = backend_of(request).changes
    entry = await _find(request, number)

    def compare() -> list[plan.Step]:
        if entry.before is None:
            return []
        before, after = (loads(changes.journal.text(text), changes.file) for text in (entry.before, entry.after))
        return plan.steps(before, after)

    try:
        found = await asyncio.to_thread(compare)
    except ConfigError:  # a file to which it refers no longer exists
        found = []
    return {**describe(entry), "steps": describe_steps(found)}


@router.post(
    "/history/{number}/undo",
    response_model=models.Operation,
    responses=responses(NotFoundError, UnprocessableError, UnavailableError),
)
async def post_undo(request: Request, caller: Operator, number: Number, options: WithOptions) -> Response:
    """Restore the configuration before a change. This also undoes later changes; cookie keys are not restored."""
    entry = await _find(request, number)
    if entry.before is None:
        raise UnprocessableError(f"change {number} is the first configuration and cannot be undone: undo a later change")
    text = await asyncio.to_thread(backend_of(request).changes.journal.text, entry.before)
    return await make(request, caller, verbs.undo(number, text), options)


async def _find(request: Request, number: int) -> Entry:
    found = await asyncio.to_thread(backend_of(request).changes.journal.find, number)
    if found is None:
        raise NotFoundError(f"unknown change {number}: see GET /v1/history")
    return found

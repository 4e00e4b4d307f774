# SPDX-License-Identifier: Apache-2.0
"""Routes for plans: the effect of a new configuration, and its installation if nothing has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from frontage.api import models
from frontage.api.access import Admin, Viewer
from frontage.api.etags import etag
from frontage.api.problems import ConflictError, UnavailableError, UnprocessableError, responses
from frontage.api.reading import backend_of
from frontage.api.writing import WithOptions, make
from frontage.changes import plan, verbs
from frontage.config import loads
from frontage.p4.entries import Difference
from frontage.p4.shown import is_secret

router = APIRouter(tags=["plan"])


@router.post("/plans", response_model=models.Plan, responses=responses(UnprocessableError, UnavailableError))
async def post_plan(request: Request, _caller: Viewer, wanted: models.PlanRequest) -> Any:
    """Return the changes that a configuration would make, without making them."""
    backend = backend_of(request)
    file = backend.changes.file
    before = await asyncio.to_thread(backend.changes.read)
    current = await asyncio.to_thread(loads, before, file)
    config = await asyncio.to_thread(loads, wanted.text, file)
    steps = await asyncio.to_thread(plan.steps, current, config)
    switches = await backend.preview(config)
    return models.Plan(
        base=etag(before),
        text=wanted.text,
        steps=describe_steps(steps),
        effect=plan.worst(steps),
        without_servers=plan.without_servers(config),
        switches={name: await asyncio.to_thread(_describe, found, wanted.entries) for name, found in switches.items()},
    )


@router.post(
    "/plans/apply", response_model=models.Operation, responses=responses(ConflictError, UnprocessableError, UnavailableError)
)
async def post_apply(request: Request, caller: Admin, wanted: models.PlanToApply, options: WithOptions) -> Response:
    """Install the configuration of a plan, unless the configuration or the switches have changed since."""
    backend = backend_of(request)
    config = await asyncio.to_thread(loads, wanted.text, backend.changes.file)
    now = await backend.preview(config)
    for name, expected in wanted.switches.items():
        if name in now and _digest(list(_updates(now[name]))) != expected.get("digest"):
            raise ConflictError(f"{name}: the state of the switch has changed since the plan: plan again")

    def check(before: str) -> None:
        if etag(before) != wanted.base:
            raise ConflictError("the configuration has changed since the plan: plan again")

    change = verbs.replace(wanted.text, wanted.source or "api")
    return await make(request, caller, change, options, check)


def describe_steps(found: list[plan.Step]) -> list[models.Step]:
    """Return steps as a body."""
    return [models.Step.model_validate(asdict(step)) for step in found]


def _describe(difference: Difference, with_entries: bool) -> models.SwitchPlan:
    updates = list(_updates(difference))
    kinds = [update["type"] for update in updates]
    return models.SwitchPlan(
        insert=kinds.count("INSERT"),
        modify=kinds.count("MODIFY"),
        delete=kinds.count("DELETE"),
        updates=list(map(_shown, updates)) if with_entries else None,
        digest=_digest(updates),
    )


def _updates(difference: Difference) -> Iterator[dict[str, Any]]:
    """Yield the P4Runtime updates. A default action cannot be inserted or deleted, only modified."""
    for kind, part in (("INSERT", difference.missing), ("MODIFY", difference.different), ("DELETE", difference.unexpected)):
        for key, action in sorted(part.items(), key=lambda item: (item[0].table, str(item[0].match))):
            entry = {"table": key.table, "match": list(key.match)}
            if kind != "DELETE":
                content = {"action": action.name, "params": list(action.params), "meter": action.meter}
                yield {"type": kind if key.match else "MODIFY", **entry, **content}
            elif key.match:
                yield {"type": kind, **entry, "action": None, "params": [], "meter": None}


def _shown(update: dict[str, Any]) -> models.Update:
    """Return an update as a body, without key material, because viewers can read it."""
    return models.Update.model_validate({**update, "params": None} if is_secret(update["table"]) else update)


def _digest(updates: list[dict[str, Any]]) -> str:
    return etag(updates).strip('"')

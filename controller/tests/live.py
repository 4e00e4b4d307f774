# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests with a controller and a real switch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

from frontage.config import Config, edit
from frontage.p4.entries import State
from frontage.p4.p4info import Pipeline
from frontage.p4.session import Session
from frontage.service.controller import Controller
from frontage.service.daemon import Service
from frontage.state.reconcile import plan

LIMIT = 60.0


@asynccontextmanager
async def running(config: Config, election_id: int | None = None) -> AsyncIterator[Controller]:
    controller = Controller(config, election_id=election_id)
    async with beside(controller.run()):
        yield controller


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[Service]:
    async with beside(service.run()):
        yield service


@asynccontextmanager
async def installed_service(file: Path) -> AsyncIterator[Service]:
    """Run the service of a file, whose configuration is installed at the beginning."""
    async with serving(Service(file)) as service:
        async with asyncio.timeout(LIMIT):
            await service.fleet.installed()
        yield service


@asynccontextmanager
async def beside(run: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run a coroutine in the background and cancel it at the end."""
    task = asyncio.create_task(run)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled(), f"it ended by itself: {task.exception()!r}"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.02)


def only(service: Service) -> Controller:
    """Return the controller of a service that has one switch."""
    (controller,) = service.fleet.controllers.values()
    return controller


def connected(controller: Controller) -> tuple[Session, Pipeline]:
    """Return the session and the pipeline of a connected controller."""
    assert controller.session is not None
    assert controller.pipeline is not None
    return controller.session, controller.pipeline


async def installed(controller: Controller) -> State:
    """Wait until the configuration is installed, and return the state of the switch."""
    async with asyncio.timeout(LIMIT):
        await controller.installed()
    session, pipeline = connected(controller)
    found = await plan(session, pipeline.schema, controller.config)
    assert len(found.difference) == 0
    return found.installed


def edited(file: Path, change: edit.Edit) -> Config:
    return edit.change_file(file, change)

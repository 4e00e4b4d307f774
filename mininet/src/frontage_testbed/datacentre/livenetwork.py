# SPDX-License-Identifier: Apache-2.0
"""A data centre that runs in the background with requests, while the caller uses its console."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from frontage.api.access import Role

from .. import sandbox
from ..forward import Forward
from ..load import workload
from ..load.protocols import PROTOCOLS
from ..nodes import NodeError
from . import api
from .clients import Clients
from .deployment import Deployment
from .settings import Settings
from .testbed import Testbed

START_LIMIT = 90.0
_ROUND = 60.0
"""Seconds of requests in one round; rounds follow each other with a short pause."""


@dataclass(frozen=True)
class LiveNetwork:
    """The running data centre."""

    address: str
    """Host and port of the API, on the machine."""
    token: str
    """An admin's token."""
    viewer: str
    """A viewer's token."""

    @property
    def link(self) -> str:
        """The address of the console that logs an admin in."""
        return api.log_in_link(self.address, self.token)


@contextmanager
def live_network(settings: Settings, deployment: Deployment, directory: Path) -> Iterator[LiveNetwork]:
    """Run a data centre with requests in another process. Raises NodeError if it does not start."""
    forward = Forward(0)
    ready, stop = directory / "ready", directory / "stop"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = sandbox.run(lambda box: _run(settings, deployment, box, forward, ready, stop), directory)
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    try:
        deadline = time.monotonic() + START_LIMIT
        while not ready.exists():
            if time.monotonic() > deadline or os.waitpid(child, os.WNOHANG)[0]:
                raise NodeError(f"the data centre did not start; see {directory}")
            time.sleep(0.1)
        token, viewer = ready.read_text().split()
        yield LiveNetwork(forward.address, token, viewer)
    finally:
        stop.touch()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _run(settings: Settings, deployment: Deployment, box: sandbox.Sandbox, forward: Forward, ready: Path, stop: Path) -> int:
    plan = workload.plan(
        seed=settings.seed,
        seconds=_ROUND,
        load=settings.load,
        rate=settings.bottleneck_rate,
        scale=settings.size_scale,
        clients=settings.clients,
        framing=PROTOCOLS[settings.protocol].framing,
    )
    plan_file = box.scratch / "arrivals.csv"
    workload.write_plan(plan, plan_file)
    testbed = deployment.testbed(settings, box)
    token = api.serve_api(testbed.edge.config)
    viewer = api.add_token(testbed.edge.config, "visitor", Role.VIEWER)
    try:
        with testbed:
            testbed.offer_objects(arrival.wire_size for arrival in plan)
            testbed.wait_until_ready()
            forward.start(api.HOST, api.PORT)
            partial = ready.with_suffix(".partial")
            partial.write_text(f"{token} {viewer}")
            partial.rename(ready)
            _request(testbed, plan_file, stop)
    finally:
        box.keep_logs(ready.parent / "logs")
    return 0


class _Done(Exception):
    """The caller does not use the network any more."""


def _request(testbed: Testbed, plan_file: Path, stop: Path) -> None:
    """Replay the plan until the caller is done."""

    def tick() -> None:
        if stop.exists():
            raise _Done

    while True:
        clients = Clients(testbed.clients, testbed.generator(plan_file), testbed.scratch / "clients.log")
        try:
            clients.run(tick)
        except _Done:
            return
        finally:
            clients.stop()

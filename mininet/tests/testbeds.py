# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests that bring up testbeds."""

import json
import os
import time
import traceback
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from frontage_testbed import frr, sandbox
from frontage_testbed.datacentre.clients import Clients
from frontage_testbed.datacentre.deployment import Deployment, DeploymentError, find
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.nodes import Namespace
from frontage_testbed.sandbox import Sandbox

T = TypeVar("T")

ROUTING_LIMIT = 60.0
"""Seconds for each change of routes."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root: run this with sudo")
only_long = pytest.mark.long
needs_frr = pytest.mark.skipif(not frr.is_installed(), reason="needs FRR: install the package frr")


def long_except(kept: Collection[T], values: Iterable[T]) -> list[Any]:
    """Return values as parameters of a test: the `kept` ones for each run, the others for `make test-long`."""
    return [pytest.param(value, marks=() if value in kept else only_long) for value in values]


def deployment(settings: Settings) -> Deployment:
    """Return the parts of the testbeds; skip the test if something is missing."""
    try:
        return find(settings)
    except DeploymentError as error:
        pytest.skip(str(error))


class Sandboxed:
    """A function that runs in its own sandbox, in another process, while the test continues."""

    def __init__(self, body: Callable[[Sandbox], object], directory: Path) -> None:
        self._directory = directory
        self._result = directory / "returned.json"

        def write_result(box: Sandbox) -> int:
            try:
                self._result.write_text(json.dumps(body(box)))
                return 0
            finally:
                box.keep_logs(directory / "logs")

        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                status = sandbox.run(write_result, directory)
            except BaseException:
                traceback.print_exc()
            os._exit(status)

    def result(self) -> Any:
        """Wait for the function's result, which passes through JSON."""
        _, status = os.waitpid(self._pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, f"the testbed failed; logs are in {self._directory / 'logs'}"
        return json.loads(self._result.read_text())


class Schedule:
    """Actions during a run of clients, each at its earliest time in seconds or as soon as the previous ones have returned."""

    def __init__(self, actions: Iterable[tuple[float, Callable[[], object]]]) -> None:
        self._actions = list(actions)
        self.ended: dict[float, float] = {}
        """When the last action with each earliest time returned."""

    def run(self, clients: Clients, tick: Callable[[], object] = lambda: None) -> None:
        """Run the clients and the actions, and call `tick` several times a second. Fails if the clients end before all actions."""

        def act() -> None:
            tick()
            while self._actions and self._actions[0][0] <= clients.elapsed():
                earliest, action = self._actions.pop(0)
                action()
                self.ended[earliest] = clients.elapsed()

        clients.run(act)
        assert not self._actions


def seconds_until(condition: Callable[[], bool]) -> float:
    """Wait for a change of routes, and return how long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + ROUTING_LIMIT
        time.sleep(0.02)
    return time.monotonic() - began


def network_counters(host: Namespace) -> dict[str, int]:
    """Return the kernel's counters of a host, by names such as Tcp.OutRsts and TcpExt.PAWSEstab."""
    counters = {}
    lines = host.run(["cat", "/proc/net/snmp", "/proc/net/netstat"]).stdout.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group, *keys = names.split()
        counters.update({group.replace(":", ".") + k: int(v) for k, v in zip(keys, values.split()[1:], strict=True)})
    return counters

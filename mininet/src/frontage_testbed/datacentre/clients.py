# SPDX-License-Identifier: Apache-2.0
"""Runs the load generators on the client hosts and collects their reports."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..load.outcome import Outcome
from ..nodes import Namespace
from .addresses import HTTP_PORT
from .servers import OBJECTS

START_DELAY = 1.0
"""Seconds from starting the client processes to the beginning of the plan, in which all of them load."""


Generator = Callable[[int, int], list[str | Path]]
"""Returns the command of a load generator for a client's index and the monotonic time (ns) of the plan's beginning.

The command writes an `Outcome.to_line` for each request.
"""


def over_tcp(plan: Path, address: str, path: str = OBJECTS) -> Generator:
    """Return the generator of HTTP requests over the kernel's TCP to an address."""

    def command(index: int, start_ns: int) -> list[str | Path]:
        command: list[str | Path] = [sys.executable, "-m", "frontage_testbed.load.loadgen"]
        command += ["--plan", plan, "--client", str(index), "--start-ns", str(start_ns)]
        return [*command, "--address", address, "--port", str(HTTP_PORT), "--path", path]

    return command


class Clients:
    """One load generator on each client host; all replay the same plan."""

    def __init__(self, hosts: Mapping[int, Namespace], generator: Generator, log: Path) -> None:
        self.start_ns = time.monotonic_ns() + int(START_DELAY * 1e9)
        self.outcomes: list[Outcome] = []
        self._selector = selectors.DefaultSelector()
        self._partial: dict[int, bytes] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        for index, host in hosts.items():
            with log.open("ab") as errors:
                command = generator(index, self.start_ns)
                process = host.spawn(command, stdout=subprocess.PIPE, stderr=errors)
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
            self._selector.register(process.stdout, selectors.EVENT_READ)
            self._processes.append(process)

    @property
    def pids(self) -> list[int]:
        """Process ids of the clients."""
        return [p.pid for p in self._processes]

    def elapsed(self) -> float:
        """Return the seconds since the plan began; negative before."""
        return (time.monotonic_ns() - self.start_ns) / 1e9

    def run(self, tick: Callable[[], None], interval: float = 0.25) -> None:
        """Collect outcomes until every client has ended. Calls `tick` at least every `interval` seconds."""
        next_tick = time.monotonic()
        while self._selector.get_map():
            for key, _ in self._selector.select(max(0.0, next_tick - time.monotonic())):
                self._read(key.fd)
            if time.monotonic() >= next_tick:
                tick()
                next_tick = time.monotonic() + interval
        for process in self._processes:
            process.wait()
        tick()

    def _read(self, fd: int) -> None:
        data = os.read(fd, 65536)
        if not data:
            self._selector.unregister(fd)
            return
        *lines, self._partial[fd] = (self._partial.get(fd, b"") + data).split(b"\n")
        self.outcomes += [Outcome.from_line(line.decode()) for line in lines]

    def stop(self) -> None:
        """Kill clients that still run."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self._selector.close()

# SPDX-License-Identifier: Apache-2.0
"""Connections that clients open at a steady rate during the events of a run."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from frontage_demo.artemis.measure import BY_ARTEMIS, Failed, begin, end, site_of_cookie

from .testbed import CatchmentTestbed

INTERVAL = 0.25
"""Seconds between two connections of a client."""
LIMIT = 10.0
"""Seconds after which a connection counts as failed."""


@dataclass(frozen=True)
class Attempt:
    """A connection with one request."""

    client: str
    begun: float
    """Seconds since the epoch."""
    site: int | None
    """The site that served it; None if it failed."""
    setup: float
    """Seconds for the handshake; 0 if it failed."""
    ended: float
    """Seconds since the epoch, up to 20 ms too late."""


class Attempts:
    """The connections of some clients, from the start of its context to `stop`."""

    def __init__(self, testbed: CatchmentTestbed, clients: Sequence[str]) -> None:
        self._testbed = testbed
        self._clients = clients
        self._done: list[Attempt] = []
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._running: dict[subprocess.Popen[bytes], tuple[str, float]] = {}
        self._thread = threading.Thread(target=self._run)
        self._ids = {site.location: site.id for site in testbed.sites}

    def start(self) -> None:
        """Begin to open connections."""
        self._thread.start()

    def burst(self, count: int, seconds: float) -> None:
        """Let each client open further connections, spread over some seconds, so that they are in different phases at the end."""
        start = time.monotonic()
        for i in range(count):
            time.sleep(max(0.0, start + i * seconds / count - time.monotonic()))
            with self._starting:
                self._open()

    def _open(self) -> None:
        """Let each client open a connection."""
        for client in self._clients:
            self._running[begin(self._testbed, client, *BY_ARTEMIS)] = client, time.time()

    def stop(self) -> list[Attempt]:
        """Open no more connections, wait for the last ones, and return all."""
        self._stop.set()
        self._thread.join()
        return sorted(self._done, key=lambda attempt: (attempt.begun, attempt.client))

    def _run(self) -> None:
        due = time.monotonic()
        while self._running or not self._stop.is_set():
            with self._starting:
                if time.monotonic() >= due and not self._stop.is_set():
                    due = time.monotonic() + INTERVAL
                    self._open()
            for process, (client, begun) in list(self._running.items()):
                if process.poll() is None and time.time() < begun + LIMIT:
                    continue
                process.kill()
                self._done.append(self._attempt(process, client, begun))
                del self._running[process]
            time.sleep(0.02)

    def _attempt(self, process: subprocess.Popen[bytes], client: str, begun: float) -> Attempt:
        ended = time.time()
        with contextlib.suppress(Failed):
            report = end(client, process)
            site = self._ids[site_of_cookie(self._testbed, report["preferred"])]
            return Attempt(client, begun, site, report["seconds"]["connect"], ended)
        return Attempt(client, begun, None, 0.0, ended)

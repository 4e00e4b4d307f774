# SPDX-License-Identifier: Apache-2.0
"""A download over QUIC by any client on a host of the testbed, with a capture of the host's packets."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..capture import Capture, Datagram
from ..nodes import Namespace

LOG_LENGTH = 2000
"""Characters of a log's end that a result keeps."""


@dataclass(frozen=True)
class Done:
    """The result of a download."""

    status: int | None
    """The client's exit status; None if it did not end in time."""
    right: bool
    """True if the object arrived unchanged."""
    log: str
    """The end of the client's output."""
    seen: list[Datagram]

    @property
    def whole(self) -> bool:
        """True if the client succeeded and the object is unchanged."""
        return self.status == 0 and self.right


class Download:
    """A client's download, and a capture of its host's packets from and to the service."""

    def __init__(self, command: Sequence[str | Path], host: Namespace, folder: Path, original: Path, limit: float) -> None:
        """`command` saves the object in `folder`, which is created here, under the name of the file `original`, which holds
        what the servers serve. It may take `limit` seconds.
        """
        self.command = command
        self._host = host
        self._folder = folder
        self._original = original
        self._limit = limit
        folder.mkdir()
        self._capture = Capture(host, folder)
        self._before = 0
        self._before = self.received()

    def begin(self) -> None:
        """Start the client."""
        with (self._folder / "client.log").open("wb") as log:
            self._process = self._host.spawn(self.command, stdout=log, stderr=log)
        self._deadline = time.monotonic() + self._limit

    def received(self) -> int:
        """Return the bytes that the host received since the capture began."""
        return int(self._host.run(["cat", "/sys/class/net/eth0/statistics/rx_bytes"]).stdout) - self._before

    @property
    def runs(self) -> bool:
        """True if the client still runs."""
        return self._process.poll() is None

    def wait_for(self, count: int) -> bool:
        """Wait until the host received `count` bytes, and return whether the client still runs then."""
        while self.received() < count:
            if not self.runs or time.monotonic() > self._deadline:
                return False
            time.sleep(0.01)
        return self.runs

    def seen(self) -> list[Datagram]:
        """Return the datagrams captured so far."""
        return self._capture.datagrams()

    def finish(self) -> Done:
        """Wait for the client, at most until the limit, and compare the file with the object."""
        status: int | None
        try:
            status = self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(self._process.pid, signal.SIGKILL)  # `spawn` gave it its own process group
            self._process.wait()
        self._capture.end()
        saved = self._folder / self._original.name
        right = saved.exists() and saved.read_bytes() == self._original.read_bytes()
        log = (self._folder / "client.log").read_text(errors="replace")
        return Done(status, right, log[-LOG_LENGTH:], self.seen())

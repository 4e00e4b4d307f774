"""A download over QUIC on a host of the testbed, by whatever client, and what that host's network sees of it."""

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

LAST = 2000
"""Letters of a log, to show with an error."""


@dataclass(frozen=True)
class Done:
    """What came of a download."""

    status: int | None
    """The client's exit status; None if it did not end in time."""
    right: bool
    """Whether the object arrived whole."""
    log: str
    """The end of what the client said."""
    seen: list[Datagram]

    @property
    def whole(self) -> bool:
        """Whether the client is content, and the object right."""
        return self.status == 0 and self.right


class Download:
    """A client's, and a capture of what its host sends to the service and is sent by it from now on."""

    def __init__(self, command: Sequence[str | Path], host: Namespace, folder: Path, original: Path, limit: float) -> None:
        """`command` saves in `folder`, which is made here, the object that the servers have in the file `original`,
        under the same name. It has `limit` seconds.
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
        """Bytes that have reached the host since the capture."""
        return int(self._host.run(["cat", "/sys/class/net/eth0/statistics/rx_bytes"]).stdout) - self._before

    @property
    def runs(self) -> bool:
        """Whether the client has not ended."""
        return self._process.poll() is None

    def wait_for(self, count: int) -> bool:
        """Wait until so many bytes have reached the host; whether the client is still at work then."""
        while self.received() < count:
            if not self.runs or time.monotonic() > self._deadline:
                return False
            time.sleep(0.01)
        return self.runs

    def seen(self) -> list[Datagram]:
        """What the host's network saw so far."""
        return self._capture.datagrams()

    def finish(self) -> Done:
        """Wait for the end, at most until the limit, and compare what came with the object."""
        status: int | None
        try:
            status = self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(self._process.pid, signal.SIGKILL)  # `spawn` has given it a group of its own
            self._process.wait()
        self._capture.end()
        saved = self._folder / self._original.name
        right = saved.exists() and saved.read_bytes() == self._original.read_bytes()
        log = (self._folder / "client.log").read_text(errors="replace")
        return Done(status, right, log[-LAST:], self.seen())

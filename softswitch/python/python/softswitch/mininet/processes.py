# SPDX-License-Identifier: Apache-2.0
"""Running softswitch beside mininet."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

START_TIMEOUT = 30
"""Seconds until a switch is ready."""


class Process:
    """A running softswitch."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Start it, and wait until it is ready.

        Raises RuntimeError with the last line of its log if it is not ready in time.
        """
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        end = time.monotonic() + START_TIMEOUT
        while "ready" not in log.read_text(errors="replace").split("\n"):
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
                raise RuntimeError(f"softswitch did not start: {lines[-1]}: see {log}")
            time.sleep(0.02)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process, if it has not ended."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

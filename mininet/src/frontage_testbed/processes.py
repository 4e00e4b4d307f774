# SPDX-License-Identifier: Apache-2.0
"""Starts servers, waits until they listen, and ends them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from .nodes import Namespace, NodeError

START_TIMEOUT = 20.0
STOP_TIMEOUT = 5.0
LAST_BYTES = 500
"""Bytes of a log's end that an error shows."""


def serve(host: Namespace, name: str, command: Sequence[str | Path], port: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start a process in `folder` and wait until a TCP or UDP socket is bound to `port`. Its log is `folder/NAME.log`.

    Raises NodeError.
    """
    file = folder / f"{name}.log"
    with file.open("wb") as log:
        process = host.spawn(command, stdout=log, stderr=log, cwd=folder)
    deadline = time.monotonic() + START_TIMEOUT
    while not host.run(["ss", "-Hltun", "sport", "=", f":{port}"]).stdout:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise NodeError(f"{name} did not start: {file.read_text(errors='replace').strip()[-LAST_BYTES:]}")
        time.sleep(0.05)
    return process


def udp_ports(host: Namespace) -> set[int]:
    """Return the UDP ports that a host listens on."""
    lines = host.run(["ss", "-Hlun"]).stdout.splitlines()
    return {int(line.split()[3].rpartition(":")[2]) for line in lines}


def end(process: subprocess.Popen[bytes] | None) -> None:
    """Terminate a process and wait for it; kill it after `STOP_TIMEOUT`."""
    if process is None:
        return
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

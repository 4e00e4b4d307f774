"""Starting processes that serve, seeing that they do, and ending them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from .nodes import Namespace, NodeError

START_TIMEOUT = 20.0
STOP_TIMEOUT = 5.0
LAST_BYTES = 500
"""Of a log, to show with an error."""


def serve(host: Namespace, name: str, command: Sequence[str | Path], port: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start a process in `folder`, whose log there has its name, and wait until something is at the port, TCP's or
    UDP's. Raises NodeError.
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
    """Those that a host listens to."""
    lines = host.run(["ss", "-Hlun"]).stdout.splitlines()
    return {int(line.split()[3].rpartition(":")[2]) for line in lines}


def end(process: subprocess.Popen[bytes] | None) -> None:
    """Ask a process to end, and wait; kill it if it does not."""
    if process is None:
        return
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

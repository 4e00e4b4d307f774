"""Ending processes."""

from __future__ import annotations

import subprocess

STOP_TIMEOUT = 5.0


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

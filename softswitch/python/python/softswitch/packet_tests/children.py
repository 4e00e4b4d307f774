# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive the runner."""

import ctypes
import signal
import subprocess

_PR_SET_PDEATHSIG = 1
_STOP_TIMEOUT = 5.0
"""Seconds after which a process that ignores SIGTERM is killed."""


def die_with_parent() -> None:
    """Let Linux kill this process when its parent ends. For `preexec_fn`, and after a fork."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, and wait for it."""
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

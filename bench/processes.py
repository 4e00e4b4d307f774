# SPDX-License-Identifier: Apache-2.0
"""Memory and core time of processes."""

from __future__ import annotations

import os
import time
from pathlib import Path


def resident(pid: int | str) -> float:
    """Return the resident set size of a process in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def user_seconds(pid: int) -> float:
    """Return the core time that a process has spent in user space so far, in seconds."""
    return _ticks(pid)[0] / os.sysconf("SC_CLK_TCK")


def core_seconds(pid: int) -> float:
    """Return the core time so far of this process and process `pid` in seconds."""
    return time.process_time() + sum(_ticks(pid)) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> tuple[int, int]:
    """Return the time of a process in user space and in the kernel, in clock ticks."""
    # The program's name, in parentheses, may contain spaces; utime and stime are fields 14 and 15 (proc_pid_stat(5)).
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])

# SPDX-License-Identifier: Apache-2.0
"""Measures the processor use of each part of the testbed from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _process_seconds(pid: int) -> float:
    """Return the processor time of a process; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _busy_seconds() -> float:
    """Return the processor time that all processes of the machine used, summed over its cores."""
    fields = [int(f) for f in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICKS


class ProcessorUse:
    """Average number of cores in use since the creation of this object."""

    def __init__(self, parts: Mapping[str, Sequence[int]]) -> None:
        self._parts = parts
        self._began = time.monotonic()
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        used = {part: sum(_process_seconds(pid) for pid in pids) for part, pids in self._parts.items()}
        return used | {"whole machine": _busy_seconds()}

    def cores(self) -> dict[str, float]:
        """Return the cores in use by part."""
        elapsed = max(time.monotonic() - self._began, 1e-3)
        return {part: max(0.0, now - self._before[part]) / elapsed for part, now in self._read().items()}

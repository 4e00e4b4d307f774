"""How much of the machine each part of the testbed uses, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _process_seconds(pid: int) -> float:
    """Processor time that a process has used; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _busy_seconds() -> float:
    """Processor time that the machine has used for anything, all cores together."""
    fields = [int(f) for f in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICKS


class ProcessorUse:
    """Cores in use on average between two moments."""

    def __init__(self, parts: Mapping[str, Sequence[int]]) -> None:
        self._parts = parts
        self._began = time.monotonic()
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        used = {part: sum(_process_seconds(pid) for pid in pids) for part, pids in self._parts.items()}
        return used | {"whole machine": _busy_seconds()}

    def cores(self) -> dict[str, float]:
        """By part, since this object was made."""
        elapsed = max(time.monotonic() - self._began, 1e-3)
        return {part: max(0.0, now - self._before[part]) / elapsed for part, now in self._read().items()}

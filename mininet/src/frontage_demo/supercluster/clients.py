# SPDX-License-Identifier: Apache-2.0
"""Starts and stops the process of a region's clients."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .load import Name
from .plan import RECOVERY_TIMEOUT, Plan, StormError
from .servers import Region


class Clients:
    """The client process of one region; it writes its history to `out`."""

    def __init__(self, region: Region, servers: Sequence[str], folder: Path) -> None:
        self.site = region.site
        self.out = folder / f"clients-{self.site}.jsonl"
        self._log = folder / f"clients-{self.site}.log"
        self._names = folder / f"names-{self.site}"
        self._region = region
        self._servers = servers
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self, sites: Sequence[int], names: Sequence[Name], plan: Plan) -> None:
        """Start the process and wait until it is ready. Raises StormError."""
        self._names.write_text("".join(f"{name}\n" for name in names))
        command: list[str | Path] = [sys.executable, "-m", "frontage_demo.supercluster.load", "--site", str(self.site)]
        command += ["--sites", *map(str, sites), "--servers", *self._servers, "--names", self._names]
        command += ["--rate", str(plan.rate / len(sites)), "--seed", str(plan.seed), "--out", self.out]
        with self._log.open("wb") as log:
            self._process = self._region.spawn(command, log)
        async with asyncio.timeout(RECOVERY_TIMEOUT):
            while "ready" not in self._log.read_text():
                self._check(self._process.poll() is None)
                await asyncio.sleep(0.05)

    async def end(self) -> dict[str, int]:
        """End the process and return its failed operations by error. Raises StormError."""
        assert self._process is not None
        self._process.terminate()
        async with asyncio.timeout(RECOVERY_TIMEOUT):
            while self._process.poll() is None:
                await asyncio.sleep(0.05)
        self._check(self._process.returncode == 0)
        lines = [line.split() for line in self._log.read_text().splitlines()]
        return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}

    def _check(self, ok: bool) -> None:
        if not ok:
            raise StormError(f"clients of site {self.site} failed: {self._log.read_text()[-2000:]}")

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

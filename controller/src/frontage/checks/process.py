# SPDX-License-Identifier: Apache-2.0
"""The prober as a child process: started, given orders, and read from."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from frontage.checks.messages import Report, decode_report

_MAX_REPORT = 1 << 26
_STOP_TIMEOUT = 2.0


class ProberError(Exception):
    """The prober ended, or is not one."""


class ProberProcess:
    """A running prober, inside its context."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "frontage.checks.prober")
        self._process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=_MAX_REPORT)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_TIMEOUT):
                    await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def order(self, line: bytes) -> None:
        """Send an order. If the prober has ended, `reports` raises the error."""
        if self._process is not None and self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(line)

    async def reports(self, silence: float) -> AsyncIterator[Report]:
        """Yield the reports. Raises ProberError if the prober ends, or sends nothing for ``silence`` seconds."""
        assert self._process is not None and self._process.stdout is not None
        while True:
            try:
                async with asyncio.timeout(silence):
                    line = await self._process.stdout.readline()
            except TimeoutError:
                raise ProberError(f"no report within {silence:g} s") from None
            except ValueError as error:
                raise ProberError(f"invalid report: {error}") from None
            if not line:
                code = await self._process.wait()
                raise ProberError(f"ended with signal {-code}" if code < 0 else f"ended with status {code}")
            try:
                yield decode_report(line)
            except (ValueError, TypeError, KeyError) as error:
                raise ProberError(f"invalid report: {error}") from None

# SPDX-License-Identifier: Apache-2.0
"""``python -m frontage.checks.prober``: the process that checks servers.

It reads orders from standard input and writes reports to standard output (`frontage.checks.messages`). It ends when its input
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import importlib
import random
import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

from frontage.checks.failures import CheckerFailedError, CheckFailedError
from frontage.checks.link import Proof
from frontage.checks.messages import Report, Result, Target, decode_order, encode_report
from frontage.checks.ping import Pinger
from frontage.checks.servers import Verdict
from frontage.checks.sockets import TURNS
from frontage.checks.tcp import TcpChecks

TICK = 0.005
"""Seconds by which a check may begin or time out late, so that several share one wake-up."""
FLUSH = 0.01
"""Seconds by which a result may wait for others."""
SPREAD = 1.0
"""Seconds over which the first checks of new targets are spread."""
HEARTBEAT = 1.0
"""Seconds after which a report is sent even if it is empty."""
_MAX_ORDER = 1 << 26
_MODULES = {"http": "http", "https": "http", "http3": "http3", "grpc": "grpc_health", "script": "script"}


def _module(kind: str) -> Any:
    """Return the module that checks this kind. It may need a library that is not installed."""
    return importlib.import_module(f"frontage.checks.{_MODULES[kind]}")


@dataclass(slots=True)
class _Scheduled:
    target: Target
    turn: int
    in_flight: bool = False
    is_late: bool = False
    """The next check was due before this one has ended."""


class Prober:
    """Checks all targets, each at its own interval."""

    def __init__(self, output: asyncio.WriteTransport):
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._random = random.Random()
        self._scheduled: dict[int, _Scheduled] = {}
        self._due: list[tuple[float, int]] = []
        """A heap of (time, id). Removed targets stay until their time."""
        self._pingers: dict[str, Pinger] = {}
        self._tcp = TcpChecks(self._loop, self._done)
        self._tasks: set[asyncio.Task[None]] = set()
        self._results: list[Result] = []
        self._unproven: list[tuple[Target, str, float, float]] = []
        """Failed checks without proof that the checker was connected: target, error, begin, end."""
        self._links: dict[str, str | None] = {}
        self._flush_at: asyncio.TimerHandle | None = None
        self._reported = 0.0
        self._tick()

    def order(self, line: bytes) -> None:
        """Replace the targets. Targets that remain keep their schedule."""
        targets, pings = decode_order(line)
        wanted = {target.id: target for target in targets}
        for kind in {target.kind for target in targets} & _MODULES.keys():
            # Loading a library takes longer than some checks may.
            with contextlib.suppress(ImportError):
                _module(kind)
        for gone in self._scheduled.keys() - wanted.keys():
            del self._scheduled[gone]
        now = time.monotonic()
        for number, target in wanted.items():
            if number not in self._scheduled:
                self._scheduled[number] = _Scheduled(target, self._random.randrange(TURNS))
                delay = 0.0 if target.is_urgent else self._random.random() * min(SPREAD, target.interval)
                heapq.heappush(self._due, (now + delay, number))
        sources = {ping.source: ping for ping in pings}
        for source, pinger in list(self._pingers.items()):
            if sources.get(source) != pinger.ping:
                self._pingers.pop(source).close()
                self._links.pop(source, None)
        for source, ping in sources.items():
            if source not in self._pingers:
                self._pingers[source] = Pinger(ping, self._on_ping)

    def _tick(self) -> None:
        now = time.monotonic()
        self._tcp.expire(now)
        while self._due and self._due[0][0] <= now:
            at, number = heapq.heappop(self._due)
            scheduled = self._scheduled.get(number)
            if scheduled is None:
                continue
            if scheduled.in_flight:
                scheduled.is_late = True
                continue
            target = scheduled.target
            part = 1 + target.jitter * (self._random.random() - 0.5)
            # Without catching up, if the machine was busy for long.
            heapq.heappush(self._due, (max(at, now - target.interval) + target.interval * part, number))
            scheduled.in_flight = True
            scheduled.turn = (scheduled.turn + 1) % TURNS
            self._start(target, scheduled.turn, now)
        if now >= self._reported + HEARTBEAT:
            self._flush()
        self._loop.call_later(TICK, self._tick)

    def _start(self, target: Target, turn: int, now: float) -> None:
        if target.kind == "tcp":
            self._tcp.start(target, turn, now)
            return
        task = asyncio.create_task(self._run(target, turn, now))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, target: Target, turn: int, begin: float) -> None:
        error: Exception | None = None
        try:
            await _module(target.kind).check(target, turn)
        except (CheckFailedError, CheckerFailedError) as failure:
            error = failure
        except Exception as failure:  # a fault of the checker is not one of the server
            error = CheckerFailedError(f"{type(failure).__name__}: {failure}")
        self._done(target, begin, error)

    def _done(self, target: Target, begin: float, error: Exception | None) -> None:
        end = time.monotonic()
        scheduled = self._scheduled.get(target.id)
        if scheduled is None:
            return
        scheduled.in_flight = False
        if scheduled.is_late:
            scheduled.is_late = False
            heapq.heappush(self._due, (end, target.id))
        if error is None:
            self._add(Result(target.id, Verdict.PASSED, None, begin, end))
        elif isinstance(error, CheckerFailedError):
            self._add(Result(target.id, Verdict.UNKNOWN, str(error), begin, end))
        else:
            # A ping that is sent now, or a little later, decides.
            self._unproven.append((target, str(error), begin, end))
            if (pinger := self._pingers.get(target.source)) is not None:
                pinger.ask()

    def _on_ping(self) -> None:
        for source, pinger in self._pingers.items():
            if pinger.link.has_result and (source not in self._links or self._links[source] != pinger.error):
                self._links[source] = pinger.error
                self._flush()
        self._prove()

    def _prove(self) -> None:
        """Report the failed checks during which the checker was certainly connected, or certainly not."""
        waiting, self._unproven = self._unproven, []
        for target, error, begin, end in waiting:
            pinger = self._pingers.get(target.source)
            proof = pinger.link.proof(begin, end) if pinger is not None else Proof.DISCONNECTED
            if proof is Proof.CONNECTED:
                self._add(Result(target.id, Verdict.FAILED, error, begin, end))
            elif proof is Proof.DISCONNECTED:
                why = (pinger.error if pinger is not None else None) or "a ping of the switch was lost"
                self._add(Result(target.id, Verdict.UNKNOWN, f"{error}, but {why}", begin, end))
            else:
                self._unproven.append((target, error, begin, end))
                if pinger is not None:
                    pinger.ask()

    def _add(self, result: Result) -> None:
        self._results.append(result)
        if self._flush_at is None:
            self._flush_at = self._loop.call_later(FLUSH, self._flush)

    def _flush(self) -> None:
        if self._flush_at is not None:
            self._flush_at.cancel()
            self._flush_at = None
        results, self._results = self._results, []
        self._reported = time.monotonic()
        self._output.write(encode_report(Report(results, self._links)))


async def run() -> None:
    """Check servers until standard input ends."""
    # A sandbox may forbid it. Checks beyond the limit then have an unknown result.
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_ORDER)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    output, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    prober = Prober(output)
    while line := await reader.readline():
        prober.order(line)


def main() -> None:
    # The terminal interrupts the controller, too, which ends its prober.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Clients of one region, in their own process: paced writes and reads through a record server, and subscriptions.

Arrivals are open-loop and seeded. While the store stalls, at most `MAX_OUTSTANDING` operations wait for records of one
home site; further ones are counted as held back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from frontage_records.errors import OutcomeUnknownError, RecordError
from frontage_records.jetstream.engine import JetStream
from frontage_records.record import Consistency, now_us
from frontage_records.tasks import finish

from .history import NEVER, Operation

MAX_OUTSTANDING = 2000
READ_SHARE = 0.25
"""Share of reads among the operations."""
DRAIN_TIMEOUT = 30.0
"""Seconds for operations that are still in flight at the end."""
FILLING = "x" * 120
CONTROLLERS = 3
REPLICAS = 3


@dataclass(frozen=True)
class Name:
    """A record of the workload."""

    guid: str
    consistency: Consistency
    home: int
    """The site that orders its writes at first."""

    @classmethod
    def parse(cls, text: str) -> Name:
        """Parse the text that `str` returns."""
        guid, consistency, home = text.split("=")
        return cls(guid, Consistency(consistency), int(home))

    def __str__(self) -> str:
        return f"{self.guid}={self.consistency}={self.home}"


class Clients:
    """The clients of one site; they write their history to `out`, one operation a line."""

    def __init__(self, store: JetStream, site: int, names: list[Name], seed: int, out: TextIO) -> None:
        self._store = store
        self._site = site
        self._names = names
        self._random = random.Random(f"{seed} {site}")
        self._out = out
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: Counter[int] = Counter()
        self._number = 0
        self.counts: Counter[str] = Counter()
        """Operations that failed, by error code, and operations held back."""

    async def run(self, rate: float, stop: asyncio.Event) -> None:
        """Start `rate` operations per second until `stop` is set, then wait for those in flight."""
        loop = asyncio.get_running_loop()
        began, number = loop.time(), 0
        while not stop.is_set():
            await asyncio.sleep(max(0.0, began + number / rate - loop.time()))
            number += 1
            name, read = self._random.choice(self._names), self._random.random() < READ_SHARE
            if self._waiting[name.home] >= MAX_OUTSTANDING:
                self.counts["held_back"] += 1
                continue
            self._waiting[name.home] += 1
            task = asyncio.create_task(self._operate(name, read))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await finish(self._tasks, DRAIN_TIMEOUT)

    async def follow(self, name: Name) -> None:
        """Record when each state of a record is seen at this site."""
        async with self._store.subscribe(name.guid) as watch:
            while (record := await watch.next()) is not None:
                now = time.monotonic_ns()
                value = None if record.value is None else str(record.value["w"])
                self._note(Operation(self._site, name.guid, name.consistency, "seen", value, now, now, record.version))

    async def _operate(self, name: Name, read: bool) -> None:
        try:
            await (self._read(name) if read else self._put(name))
        finally:
            self._waiting[name.home] -= 1

    async def _put(self, name: Name) -> None:
        self._number += 1
        value = f"{self._site}.{self._number}"
        # Distinct timestamps, so that the writes of an eventual record have one order, which this process knows.
        stamp = now_us() if name.consistency is Consistency.EVENTUAL else None
        begin = time.monotonic_ns()
        end, version = NEVER, None
        try:
            written = await self._store.put(name.guid, {"w": value, "filling": FILLING}, stamp=stamp)
            end, version = time.monotonic_ns(), written.record.version if stamp is None else stamp
        except asyncio.CancelledError:
            self.counts["given_up"] += 1
        except OutcomeUnknownError as error:
            self.counts[error.code] += 1
        except RecordError as error:
            # The write was not done and no client may see it, so it is not part of the history.
            self.counts[error.code] += 1
            return
        self._note(Operation(self._site, name.guid, name.consistency, "put", value, begin, end, version))

    async def _read(self, name: Name) -> None:
        begin = time.monotonic_ns()
        try:
            record = await self._store.get(name.guid)
        except RecordError as error:
            self.counts[f"read_{error.code}"] += 1
            return
        value = None if record.value is None else str(record.value["w"])
        end = time.monotonic_ns()
        self._note(Operation(self._site, name.guid, name.consistency, "read", value, begin, end, record.version))

    def _note(self, operation: Operation) -> None:
        self._out.write(operation.line() + "\n")


async def run(args: argparse.Namespace) -> None:
    """Run the clients until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    names = [Name.parse(line) for line in args.names.read_text().splitlines()]
    store = await JetStream.open(args.servers, args.site, args.sites, replicas=REPLICAS, controllers=CONTROLLERS)
    with args.out.open("w") as out:
        clients = Clients(store, args.site, names, args.seed, out)
        followers = [asyncio.create_task(clients.follow(name)) for name in names[:: max(1, len(names) // args.followed)]]
        print("ready", flush=True)
        await clients.run(args.rate, stop)
        for follower in followers:
            follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*followers)
        await store.close()
    for code, count in sorted(clients.counts.items()):
        print(code, count, flush=True)


def main() -> int:
    """Run the clients of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=int, required=True)
    parser.add_argument("--sites", type=int, nargs="+", required=True)
    parser.add_argument("--servers", nargs="+", required=True)
    parser.add_argument("--names", type=Path, required=True, help="a file of GUID=CONSISTENCY=HOME lines")
    parser.add_argument("--rate", type=float, required=True, help="operations per second")
    parser.add_argument("--followed", type=int, default=45, help="number of records to subscribe to")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asyncio.run(run(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

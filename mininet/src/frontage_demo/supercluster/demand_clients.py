# SPDX-License-Identifier: Apache-2.0
"""Clients of one region, in their own process: HTTP requests to the record servers of all regions, at rates that a file gives.

Arrivals are open-loop and seeded. Each client has its own routing (docs/records.md#client-routing).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from frontage_records.client import RecordClient
from frontage_records.errors import OutcomeUnknownError, RecordError
from frontage_records.record import Consistency
from frontage_records.routing import Routing
from frontage_records.tasks import finish

MAX_OUTSTANDING = 400
"""Requests in progress; further ones are not sent."""
WRITE_SHARE = 0.2
_DRAIN_TIMEOUT = 30.0
_POLL_INTERVAL = 0.1
CACHE_TTL = 2.0
"""Seconds for which clients cache a record's sites."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request and its result."""

    region: int
    guid: str
    kind: str
    """``read`` or ``write``."""
    begin: float
    """Seconds of the monotonic clock, which all processes share."""
    seconds: float
    result: str
    """``ok`` or the code of the error; ``outcome_unknown`` writes may have been done."""
    stamp: int = 0
    """Stamp of an acknowledged write."""
    message: str = ""
    """The error's message."""

    def line(self) -> str:
        """Return the request as a line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))


def load(files: list[Path]) -> list[Request]:
    """Read requests that `Request.line` wrote."""
    return [Request(**json.loads(line)) for file in files for line in file.read_text().splitlines()]


class Clients:
    """The clients of a region."""

    def __init__(self, region: int, client: RecordClient, kinds: Mapping[str, Consistency], seed: int, out: TextIO) -> None:
        self._region = region
        self._client = client
        self._kinds = kinds
        self._random = random.Random(f"{seed} {region}")
        self._out = out
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0

    async def run(self, file: Path, stop: asyncio.Event) -> None:
        """Send requests at the rates in ``file``, by GUID, until ``stop`` is set; then wait for those in progress."""
        loop = asyncio.get_running_loop()
        rates: dict[str, float] = {}
        text, polled, due = "{}", 0.0, loop.time()
        while not stop.is_set():
            if loop.time() - polled >= _POLL_INTERVAL:
                polled = loop.time()
                if (found := _read(file)) != text:
                    text, rates, due = found, json.loads(found), loop.time()
            total = sum(rates.values())
            if not total or loop.time() < due:
                await asyncio.sleep(_POLL_INTERVAL if not total else min(_POLL_INTERVAL, due - loop.time()))
                continue
            due += self._random.expovariate(total)
            if len(self._tasks) < MAX_OUTSTANDING:
                guid = self._random.choices(list(rates), list(rates.values()))[0]
                task = asyncio.create_task(self._send(guid, self._random.random() < WRITE_SHARE))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        await finish(self._tasks, _DRAIN_TIMEOUT)

    async def _send(self, guid: str, writes: bool) -> None:
        begin, result, stamp, message = time.monotonic(), "ok", 0, ""
        try:
            if writes:
                stamp = await self._write(guid)
            else:
                await self._client.get(guid)
        except RecordError as error:
            result, message = error.code, str(error)
        except asyncio.CancelledError:
            result = OutcomeUnknownError.code
        kind = "write" if writes else "read"
        request = Request(self._region, guid, kind, begin, time.monotonic() - begin, result, stamp, message)
        self._out.write(request.line() + "\n")

    async def _write(self, guid: str) -> int:
        if self._kinds[guid] is Consistency.COUNTER:
            return (await self._client.update(guid, {"n": 1})).record.stamp
        self._number += 1
        return (await self._client.put(guid, {"by": f"{self._region}.{self._number}"})).record.stamp


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else "{}"


async def run(args: argparse.Namespace) -> None:
    """Run the clients until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    urls = {int(site): url for site, url in (text.split("=", 1) for text in args.servers)}
    kinds = {guid: Consistency(kind) for guid, kind in (line.split("=") for line in args.names.read_text().splitlines())}
    routing = Routing(controllers=len(urls), ttl=CACHE_TTL)
    async with RecordClient(urls, routing=routing) as client:
        with args.out.open("w") as out:
            clients = Clients(args.region, client, kinds, args.seed, out)
            print("ready", flush=True)
            await clients.run(args.rates, stop)


def main() -> int:
    """Run the clients of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--region", type=int, required=True)
    parser.add_argument("--servers", nargs="+", required=True, help="SITE=URL of each record server")
    parser.add_argument("--names", type=Path, required=True, help="a file of GUID=CONSISTENCY lines")
    parser.add_argument("--rates", type=Path, required=True, help="a JSON file with requests per second by GUID")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asyncio.run(run(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A test client that holds one connection open while clocks wrap and cookie keys rotate.

Runs in a client host's namespace as `python -m frontage_testbed.load.keepalive`, over the kernel's own TCP. For each
response it writes one line of JSON, an `Exchange`, to standard output.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Exchange:
    """One request and its response."""

    connection: int
    local_port: int
    at: float
    """Seconds since the first connection was opened."""
    took: float
    """Seconds from the request to the response's last byte."""
    server: str


class Connection:
    """One keep-alive connection."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, epoch: float) -> None:
        self._number = number
        self._reader = reader
        self._writer = writer
        self._epoch = epoch

    async def fetch(self, path: str) -> Exchange:
        """Send one request and read its response."""
        began = time.monotonic()
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: vip\r\n\r\n".encode())
        header = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = header.strip().split("\r\n")
        if " 200 " not in status:
            raise RuntimeError(f"{path}: {status}")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        await self._reader.readexactly(int(fields["content-length"]))
        port = self._writer.get_extra_info("sockname")[1]
        now = time.monotonic()
        return Exchange(self._number, port, began - self._epoch, now - began, fields.get("x-server", ""))


async def keep_alive(number: int, args: argparse.Namespace, epoch: float) -> None:
    """Run one connection from its first request to its last."""
    # Connections send requests in turn, not at the same moment.
    await asyncio.sleep(args.period * number / args.connections)
    connection = Connection(number, *await asyncio.open_connection(args.address, args.port), epoch)
    while (now := time.monotonic() - epoch) < args.seconds:
        if args.idle_from <= now < args.idle_from + args.idle_for:
            await asyncio.sleep(args.idle_from + args.idle_for - now)
        exchange = await asyncio.wait_for(connection.fetch(args.path), args.timeout)
        sys.stdout.write(json.dumps(asdict(exchange)) + "\n")
        sys.stdout.flush()
        await asyncio.sleep(max(0.0, args.period - exchange.took))


async def _run(args: argparse.Namespace) -> None:
    epoch = time.monotonic()
    await asyncio.gather(*(keep_alive(n, args, epoch) for n in range(args.connections)))


def main() -> None:
    """Entry point of the client process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", required=True, help="what to fetch")
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="lifetime of a connection")
    parser.add_argument("--period", type=float, required=True, help="seconds from one request to the next")
    parser.add_argument("--idle-from", type=float, required=True, help="when the pause begins")
    parser.add_argument("--idle-for", type=float, required=True, help="length of the pause")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds after which a response has failed")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()

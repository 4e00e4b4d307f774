# SPDX-License-Identifier: Apache-2.0
"""A client that opens connections at a constant rate, and writes one line for each request: its start, and whether it succeeded."""

from __future__ import annotations

import asyncio
import sys
import time


async def request(address: str, port: int, limit: float) -> bool:
    """Request /health over a new connection, and return whether a successful response arrives within ``limit`` seconds."""
    writer = None
    try:
        async with asyncio.timeout(limit):
            reader, writer = await asyncio.open_connection(address, port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
            return (await reader.readline()).startswith(b"HTTP/1.1 2")
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.close()


async def run(address: str, port: int, rate: float, limit: float) -> None:
    """Send ``rate`` requests per second until the process ends."""

    async def one() -> None:
        began = time.time()
        ok = await request(address, port, limit)
        print(f"{began:.3f} {int(ok)}", flush=True)

    tasks: set[asyncio.Task[None]] = set()
    due = time.monotonic()
    while True:
        tasks.add(task := asyncio.create_task(one()))
        task.add_done_callback(tasks.discard)
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))

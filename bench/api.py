# SPDX-License-Identifier: Apache-2.0
"""Latency of the controller's HTTP API for many concurrent clients.

Reads: 50 VIPs and 4,096 servers; each of 1,000 clients repeats `GET /v1/servers/NAME` on its own connection. Writes: 4 VIPs and
100 servers; each of 1,000 clients changes the weight of a server once, and waits until softswitch has it.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from frontage.api.access import Role
from frontage.tokens import generate
from paths import P4
from rows import Row, finish, row
from sites import CPU_PORT
from switches import softswitch

READERS, WRITERS = 1000, 1000
READS = 10
"""Requests of each client."""
LIMIT = 600.0
MARK = "serving the API at "


def site(address: str, vips: int, servers: int) -> str:
    """Return a configuration."""
    program = f"p4info: {P4}/frontage.p4info.txtpb, json: {P4}/frontage.json"
    return "\n".join(
        [
            f"device: {{address: '{address}', cpu_port: {CPU_PORT}, pipeline: {{{program}}}}}",
            "ports: [{id: 1, name: rack, role: server, mac: '02:00:00:00:01:01'}]",
            "routes: [{prefix: 10.0.0.0/8, port: rack, mac: '02:00:00:00:02:01'}]",
            "keys: [{id: 1, secret: 000102030405060708090a0b0c0d0e0f}]",
            "api: {listen: '127.0.0.1:0', tokens: tokens.toml}",
            "vips:",
            *(f"  - {{name: v{i}, address: 203.0.113.{i}, port: 80}}" for i in range(vips)),
            "servers:",
            *(
                f"  - {{name: s{i}, vip: v{i % vips}, address: 10.0.{i >> 8}.{i & 255}, port: 80, sid: {i}}}"
                for i in range(servers)
            ),
            "",
        ]
    )


@contextmanager
def controller(vips: int, servers: int) -> Iterator[tuple[str, str]]:
    """Run softswitch and a controller; yield the URL of the API and a token."""
    token, entry = generate("bench", Role.ADMIN)
    with tempfile.TemporaryDirectory() as folder, softswitch().running() as running:
        file, log = Path(folder, "site.yaml"), Path(folder, "log")
        Path(folder, "tokens.toml").write_text(entry)
        file.write_text(site(running.address, vips, servers))
        with log.open("wb") as out:
            process = subprocess.Popen([sys.executable, "-m", "frontage", "up", str(file)], stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + LIMIT
            while MARK not in log.read_text() or " entries: " not in log.read_text():
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError(f"the controller did not start:\n{log.read_text()}")
                time.sleep(0.1)
            yield next(line.split(MARK)[1] for line in log.read_text().splitlines() if MARK in line), token
        finally:
            process.terminate()
            process.wait()


async def clients(url: str, token: str, servers: int, requests: int, count: int, *, write: bool) -> list[float]:
    """Let all clients send their requests at the same time, and return the seconds that each request took."""
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Authorization": f"Bearer {token}"}
    timeout = aiohttp.ClientTimeout(total=LIMIT)
    async with aiohttp.ClientSession(url, connector=connector, headers=headers, timeout=timeout) as session:

        async def one(number: int) -> list[float]:
            times = []
            for _ in range(requests):
                began = time.monotonic()
                path = f"/v1/servers/s{number % servers}"
                change = session.patch(path, json={"weight": 2 + number // servers}) if write else session.get(path)
                async with change as answer:
                    await answer.read()
                    if answer.status != 200:
                        raise RuntimeError(f"{path}: {answer.status}: {await answer.text()}")
                times.append(time.monotonic() - began)
            return times

        return [seconds for times in await asyncio.gather(*map(one, range(count))) for seconds in times]


def rows(name: str, times: list[float], seconds: float) -> list[Row]:
    """Return the median, the 99th percentile, and the rate."""
    p99 = statistics.quantiles(times, n=100)[98]
    return [
        row(f"{name}_median", 1000 * statistics.median(times), "ms"),
        row(f"{name}_p99", 1000 * p99, "ms"),
        row(f"{name}_per_second", len(times) / seconds, "requests/s"),
    ]


def run() -> list[Row]:
    found = []
    for name, vips, servers, requests, write in (("api_read", 50, 4096, READS, False), ("api_write", 4, 100, 1, True)):
        with controller(vips, servers) as (url, token):
            count = WRITERS if write else READERS
            asyncio.run(clients(url, token, servers, 1, count, write=False))  # connections, caches
            began = time.monotonic()
            times = asyncio.run(clients(url, token, servers, requests, count, write=write))
            found += rows(name, times, time.monotonic() - began)
    return found


if __name__ == "__main__":
    finish(run)

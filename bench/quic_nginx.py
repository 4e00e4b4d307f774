# SPDX-License-Identifier: Apache-2.0
"""Downloads per second of one core's time, including the kernel's, from frontage-cclb7-quic and from nginx."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from statistics import median

import nginx
from http3 import SIZES, Server, Testbed, start_testbed
from rows import Row, finish, row

ROUNDS = 4
"""Number of rounds. A round has four runs: frontage-cclb7-quic, nginx, nginx, frontage-cclb7-quic."""
PORT, NGINX_PORT = 4433, 4435


def serve_nginx(testbed: Testbed, root: Path) -> contextlib.AbstractContextManager[Server]:
    """Run the nginx of a Debian root in the testbed."""
    command = nginx.command(root, testbed.folder, f"[::]:{NGINX_PORT}", ("certificate.pem", "key.pem"), "root /mnt/objects;")
    return testbed.server("nginx", NGINX_PORT, command, process="worker")


def per_second(server: Server, size: int, requests: int) -> float:
    """Return the downloads per second of the server's core time."""
    return requests / (server.measure(size, requests).core_ns / 1e9)


def measure() -> list[Row]:
    root, rows = nginx.nginx_root(), []
    with start_testbed() as testbed, contextlib.ExitStack() as servers:
        ours = servers.enter_context(testbed.cclb7_quic("ours", PORT, cookie=True))
        compared, peer = [ours], None
        if root is None:
            print(nginx.NO_NGINX, file=sys.stderr)
        else:
            peer = nginx.version(root)
            compared.append(servers.enter_context(serve_nginx(testbed, root)))
        for name, (size, requests) in SIZES.items():
            rates: list[list[float]] = [[] for _ in compared]
            for server in compared:
                server.measure(size, requests)  # fills the caches
            for number in range(2 * ROUNDS):
                order = list(zip(compared, rates, strict=True))
                for server, own_rates in order if number % 2 == 0 else reversed(order):
                    own_rates.append(per_second(server, size, requests))
            values = [median(own_rates) for own_rates in rates]
            rows.append(
                row(f"quic_server_{name.replace(' ', '')}_per_core", values[0], "downloads/s of core time", peer, *values[1:])
            )
    return rows


if __name__ == "__main__":
    finish(measure)

# SPDX-License-Identifier: Apache-2.0
"""Downloads that frontage-cclb7-quic serves in a second of one core's time, its kernel's included, and those that nginx does."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from statistics import median

import nginx
from http3 import SIZES, Lab, Server, lab
from rows import Row, finish, row

ROUNDS = 4
"""Of four turns each: ours, nginx's, nginx's, ours."""
PORT, NGINX_PORT = 4433, 4435


def serve_nginx(here: Lab, root: Path) -> contextlib.AbstractContextManager[Server]:
    command = nginx.command(root, here.folder, f"[::]:{NGINX_PORT}", ("certificate.pem", "key.pem"), "root /mnt/objects;")
    return here.server("nginx", NGINX_PORT, command, process="worker")


def per_second(server: Server, size: int, requests: int) -> float:
    """Downloads for a second of the server's core."""
    return requests / (server.turn(size, requests).core_ns / 1e9)


def measure() -> list[Row]:
    root, rows = nginx.nginx_root(), []
    with lab() as here, contextlib.ExitStack() as servers:
        ours = servers.enter_context(here.ours("ours", PORT, cookie=True))
        both, peer = [ours], None
        if root is None:
            print(nginx.NO_NGINX, file=sys.stderr)
        else:
            peer = nginx.version(root)
            both.append(servers.enter_context(serve_nginx(here, root)))
        for name, (size, requests) in SIZES.items():
            found: list[list[float]] = [[] for _ in both]
            for server in both:
                server.turn(size, requests)  # fills what is cached
            for number in range(2 * ROUNDS):
                turns = list(zip(both, found, strict=True))
                for server, rates in turns if number % 2 == 0 else reversed(turns):
                    rates.append(per_second(server, size, requests))
            values = [median(rates) for rates in found]
            rows.append(
                row(f"quic_server_{name.replace(' ', '')}_per_core", values[0], "downloads/s of core time", peer, *values[1:])
            )
    return rows


if __name__ == "__main__":
    finish(measure)

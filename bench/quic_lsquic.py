# SPDX-License-Identifier: Apache-2.0
"""Downloads per second of one core's time, including the kernel's, from frontage-lsquic, and the cost of its signals.

The same downloads come from frontage-lsquic with and without signals, from frontage-cclb7-quic with signals, and from nginx.
"""

from __future__ import annotations

import contextlib
import sys
from statistics import median, quantiles

import nginx
from http3 import SIZES, Server, start_testbed
from quic_nginx import NGINX_PORT, serve_nginx
from rows import Row, finish, row

ROUNDS = 10
"""Number of rounds, each with one run of every server, in alternating order."""
PORTS = {"lsquic": 4433, "lsquic without signals": 4434, "frontage-cclb7-quic": 4436}
LSQUIC, PLAIN, OURS = PORTS


def measure() -> list[Row]:
    root, rows = nginx.nginx_root(), []
    with start_testbed() as testbed, contextlib.ExitStack() as running:
        servers: dict[str, Server] = {
            LSQUIC: running.enter_context(testbed.lsquic("signals", PORTS[LSQUIC], signals=True)),
            PLAIN: running.enter_context(testbed.lsquic("plain", PORTS[PLAIN], signals=False)),
            OURS: running.enter_context(testbed.cclb7_quic("ours", PORTS[OURS], cookie=True)),
        }
        if root is None:
            print(nginx.NO_NGINX, file=sys.stderr)
        else:
            servers[nginx.version(root)] = running.enter_context(serve_nginx(testbed, root))
        assert NGINX_PORT not in PORTS.values()
        for name, (size, requests) in SIZES.items():
            times: dict[str, list[int]] = {server: [] for server in servers}
            for server in servers.values():
                server.measure(size, requests)  # fills the caches
            for number in range(ROUNDS):
                order = list(servers.items())
                for server_name, server in order if number % 2 == 0 else reversed(order):
                    times[server_name].append(server.measure(size, requests).core_ns)
            rows += compare(name.replace(" ", ""), requests, times)
    return rows


def compare(size: str, requests: int, times: dict[str, list[int]]) -> list[Row]:
    """Return the rows of one object size; `times` are nanoseconds of core time per run."""
    rates = {name: requests / (median(own) / 1e9) for name, own in times.items()}
    more = [100 * (signals / plain - 1) for signals, plain in zip(times[LSQUIC], times[PLAIN], strict=True)]
    low, middle, high = quantiles(more, n=4)
    unit = "downloads/s of core time"
    return [
        *(
            row(f"quic_lsquic_{size}_per_core_vs_{'cclb7' if name == OURS else 'nginx'}", rates[LSQUIC], unit, name, rate)
            for name, rate in rates.items()
            if name not in (LSQUIC, PLAIN)
        ),
        row(f"quic_lsquic_{size}_signals_overhead", middle, "% of core time"),
        row(f"quic_lsquic_{size}_signals_overhead_low", low, "% of core time"),
        row(f"quic_lsquic_{size}_signals_overhead_high", high, "% of core time"),
    ]


if __name__ == "__main__":
    finish(measure)

# SPDX-License-Identifier: Apache-2.0
"""Capacity of a load balancer that hands requests over to real servers (QDSR, section 5.1, figure 7).

frontage-cclb7-quic with [handoff] is compared with the same balancer as a proxy and with nginx as a proxy.
Each balancer may use only a small share of its core, so it is the bottleneck even on a machine with two cores.
Its capacity is the number of requests per second of its core time.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from statistics import median, quantiles

import nginx
from qdsr_testbed import Balancer, Run, Testbed, start_testbed
from rows import Row, finish, row

SIZES = [1, 4, 16, 64, 128, 256, 512, 1024]
"""Sizes of objects in KiB."""
CONNECTIONS, PARALLEL = 8, 8
"""Connections, and concurrent requests on each, as in the paper."""
ROUNDS = 4
SECONDS = 3.0
"""Duration for which a run starts downloads."""
PROXY, HANDOFF, NGINX_PORT, PER_CONNECTION = 4433, 4434, 4435, 4436
PEER = "the same balancer as a proxy"


def rounds(balancers: list[Balancer], size: int) -> list[list[Run]]:
    """Return one run per round of each balancer. The order alternates, so a drift affects all alike."""
    result: list[list[Run]] = [[] for _ in balancers]
    for balancer in balancers:
        balancer.measure(size, SECONDS / 4, CONNECTIONS, PARALLEL)  # fills the caches
    for number in range(ROUNDS):
        order = list(zip(balancers, result, strict=True))
        for balancer, runs in order if number % 2 == 0 else reversed(order):
            runs.append(balancer.measure(size, SECONDS, CONNECTIONS, PARALLEL))
    return result


def capacity(run: Run) -> float:
    """Return the requests per second of the balancer's core time."""
    return run.requests / (run.core_ns / 1e9)


def rows_of(size: int, measured: list[list[Run]], peer: str | None) -> list[Row]:
    """Return the rows of one object size."""
    name = f"qdsr_{size}KiB"
    capacities = [[capacity(run) for run in runs] for runs in measured]
    ours, proxy, one_path, per_connection, *others = [median(values) for values in capacities]
    bits = size * 1024 * 8 / 1e6
    low, middle, high = quantiles([100 * a / b for a, b in zip(*capacities[:2], strict=True)], n=4)
    rows = [
        row(f"{name}_requests", ours, "requests/s of core time", PEER, proxy),
        row(f"{name}_throughput", ours * bits, "Mbit/s of core time", PEER, proxy * bits),
        row(f"{name}_requests_one_path", one_path, "requests/s of core time", PEER, proxy),
        row(f"{name}_requests_per_connection", per_connection, "requests/s of core time", PEER, proxy),
        *(
            row(f"{name}_share{which}", value, "% of the proxy's")
            for which, value in (("_low", low), ("", middle), ("_high", high))
        ),
    ]
    return rows + [row(f"{name}_requests_nginx", ours, "requests/s of core time", peer, other) for other in others]


def best(rows: list[Row]) -> Row:
    """Return the highest throughput over all sizes, separately for each balancer."""
    throughput = [entry for entry in rows if entry["name"].endswith("_throughput")]
    values = [max(entry[which] for entry in throughput) for which in ("value", "peer_value")]
    return row("qdsr_maximum_throughput", values[0], "Mbit/s of core time", PEER, values[1])


def measure() -> list[Row]:
    root, peer, rows = nginx.nginx_root(), None, []
    with start_testbed([size * 1024 for size in SIZES]) as testbed, contextlib.ExitStack() as running:
        balancers = start(testbed, running)
        if root is None:
            print(nginx.NO_NGINX, file=sys.stderr)
        else:
            peer = f"{nginx.version(root)} as a proxy"
            balancers.append(running.enter_context(testbed.nginx(NGINX_PORT, root)))
        for size in SIZES:
            rows += rows_of(size, rounds(balancers, size * 1024), peer)
    return [*rows, best(rows)]


def start(testbed: Testbed, running: contextlib.ExitStack) -> list[Balancer]:
    """Start the balancers: with hand-off, as a proxy, with hand-off for clients without multipath, and with one real server per
    connection.
    """
    handoff = running.enter_context(testbed.handoff(HANDOFF))
    proxy = running.enter_context(testbed.proxy(PROXY))
    per_connection = running.enter_context(testbed.handoff(PER_CONNECTION, "per-connection"))
    return [handoff, proxy, replace(handoff, paths=1), per_connection]


if __name__ == "__main__":
    finish(measure)

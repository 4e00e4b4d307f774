# SPDX-License-Identifier: Apache-2.0
"""What requests cost a load balancer that hands them to real servers (QDSR, section 5.1, Fig. 7): frontage-cclb7-quic with its [handoff]
beside the same balancer as a proxy, and nginx as one. Each may use a small part of its core, and uses all of it: so on two
cores, too, it is the balancer that all others wait for, and its capacity is what it does in a second of its core's time."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from statistics import median, quantiles

import nginx
from qdsr_lab import Form, Lab, Turn, lab
from rows import Row, finish, row

SIZES = [1, 4, 16, 64, 128, 256, 512, 1024]
"""Of objects, in KiB."""
CONNECTIONS, PARALLEL = 8, 8
"""The paper's: connections, and requests under way on each."""
ROUNDS = 4
SECONDS = 3.0
"""For which a turn begins downloads."""
PROXY, HANDOFF, NGINX_PORT = 4433, 4434, 4435
PEER = "the same balancer as a proxy"


def rounds(forms: list[Form], size: int) -> list[list[Turn]]:
    """Each form's turns, one a round. Forms take turns, each second round in the other order: what drifts hits all alike."""
    found: list[list[Turn]] = [[] for _ in forms]
    for form in forms:
        form.turn(size, SECONDS / 4, CONNECTIONS, PARALLEL)  # fills what is cached
    for number in range(ROUNDS):
        both = list(zip(forms, found, strict=True))
        for form, turns in both if number % 2 == 0 else reversed(both):
            turns.append(form.turn(size, SECONDS, CONNECTIONS, PARALLEL))
    return found


def capacity(turn: Turn) -> float:
    """Requests in a second of the balancer's core."""
    return turn.requests / (turn.core_ns / 1e9)


def rows_of(size: int, found: list[list[Turn]], peer: str | None) -> list[Row]:
    name = f"qdsr_{size}KiB"
    capacities = [[capacity(turn) for turn in turns] for turns in found]
    ours, proxy, one_path, *others = [median(values) for values in capacities]
    bits = size * 1024 * 8 / 1e6
    low, middle, high = quantiles([100 * a / b for a, b in zip(*capacities[:2], strict=True)], n=4)
    rows = [
        row(f"{name}_requests", ours, "requests/s of core time", PEER, proxy),
        row(f"{name}_throughput", ours * bits, "Mbit/s of core time", PEER, proxy * bits),
        row(f"{name}_requests_one_path", one_path, "requests/s of core time", PEER, proxy),
        *(
            row(f"{name}_share{which}", value, "% of the proxy's")
            for which, value in (("_low", low), ("", middle), ("_high", high))
        ),
    ]
    return rows + [row(f"{name}_requests_nginx", ours, "requests/s of core time", peer, other) for other in others]


def best(rows: list[Row]) -> Row:
    """The most throughput of any size, each form's own."""
    throughput = [found for found in rows if found["name"].endswith("_throughput")]
    values = [max(found[which] for found in throughput) for which in ("value", "peer_value")]
    return row("qdsr_maximum_throughput", values[0], "Mbit/s of core time", PEER, values[1])


def measure() -> list[Row]:
    root, peer, rows = nginx.nginx_root(), None, []
    with lab([size * 1024 for size in SIZES]) as here, contextlib.ExitStack() as running:
        forms = start(here, running)
        if root is None:
            print(nginx.NO_NGINX, file=sys.stderr)
        else:
            peer = f"{nginx.version(root)} as a proxy"
            forms.append(running.enter_context(here.nginx(NGINX_PORT, root)))
        for size in SIZES:
            rows += rows_of(size, rounds(forms, size * 1024), peer)
    return [*rows, best(rows)]


def start(here: Lab, running: contextlib.ExitStack) -> list[Form]:
    """The balancer that hands over, the one that is a proxy, and the former once more, for clients without multipath."""
    handoff = running.enter_context(here.handoff(HANDOFF))
    return [handoff, running.enter_context(here.proxy(PROXY)), replace(handoff, paths=1)]


if __name__ == "__main__":
    finish(measure)

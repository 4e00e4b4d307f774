# SPDX-License-Identifier: Apache-2.0
"""The measurement: orders to all clients under load, and a server that drains in the end."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

from scapy.utils import RawPcapReader

from frontage_testbed.capture import Capture, Datagram, read_datagram
from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.nodes import NodeError

from .testbed import MovingTestbed

CONNECTIONS, ORDERS = 20, 5
"""Connections that move, and orders to all of them: 100 moves. The last one is to the cookie address."""
SIZE = 20_000
"""Bytes of the object that they request again and again."""
LOAD_SECONDS = 60
"""Duration of the load, which must outlast all orders."""
ORDER_SECONDS = 1.2
"""Seconds between two orders: a client moves once a second at most."""
LIMIT = 60.0
SETTINGS = Settings(servers=2, clients=1, policies=("cclb4",), bottleneck_rate=48_000_000, queue_delay=0.1)
VIP, COOKIE = f"[{QUIC_VIP6}]:{QUIC_PORT}", "cookie"


@dataclass(frozen=True)
class Moves:
    """The result of a measurement."""

    requests: int
    failures: dict[str, int]
    """Failed requests, by reason."""
    completed: int
    """Moves that the clients have completed."""
    failed: int
    """Moves and hand-overs that failed, as clients and servers count them."""
    handed_over: int
    """Connections that their clients closed after a hand-over, as the servers count them."""
    reopened: int
    """Connections that clients opened at an announced server."""
    delays: list[float]
    """Seconds from each order to the last packet of each connection from or to the address that it left."""
    drained: float
    """Seconds from the hand-over order until the last client had left."""


def measure(testbed: MovingTestbed, before_drain: Callable[[], None] = lambda: None) -> Moves:
    """Give all orders while clients request objects. Call `before_drain` before the first server drains. Raises NodeError."""
    host = testbed.clients[0]
    capture = Capture(host, testbed.scratch)
    options = ["--connections", str(CONNECTIONS), "--seconds", str(LOAD_SECONDS), "--expect", str(SIZE)]
    command: list[str | Path] = [testbed.h3_client, "load", f"https://{VIP}/{SIZE}", "--insecure", "--moves", *options]
    load = host.spawn(command, stdout=subprocess.PIPE)
    _wait_until(lambda: sum(testbed.answers().values()) >= 10 * CONNECTIONS, "the load runs")
    orders = []
    for number, (target, left) in enumerate(islice(cycle(((COOKIE, VIP), (VIP, COOKIE))), ORDERS), 1):
        began = time.monotonic()
        orders.append((testbed.order("move", target), left == VIP))
        _wait_until(partial(testbed.have_moved, number * CONNECTIONS), f"order {number} is carried out")
        time.sleep(max(0.0, ORDER_SECONDS - (time.monotonic() - began)))
    before_drain()
    drained = _drain(testbed)
    if load.poll() is not None:
        raise NodeError(f"the orders took longer than the load of {LOAD_SECONDS} s")
    output, _ = load.communicate(timeout=2 * LOAD_SECONDS)
    capture.end()
    summary: dict[str, Any] = json.loads(output)
    failed = sum(testbed.moves(kind, "failed") for kind in ("move", "hand_over"))
    return Moves(
        requests=summary["requests"],
        failures=summary["failures"],
        completed=summary["moves"]["completed"],
        failed=failed + summary["moves"]["failed"],
        handed_over=testbed.moves("hand_over", "completed"),
        reopened=summary["moves"]["handed_over"],
        delays=last_packets(_timed(capture.file), orders),
        drained=drained,
    )


def _drain(testbed: MovingTestbed) -> float:
    """Drain the first server and hand its clients over to the second. Return how long they took to leave, in seconds."""
    first, second = testbed.server_addresses[:2]
    testbed.edge.drain(first)
    began = time.monotonic()
    testbed.order("hand_over", testbed.cookie_address(second), [first])

    def have_left() -> bool:
        offered, *done = (testbed.moves("hand_over", what, [first]) for what in ("offered", "completed", "unsupported"))
        return 0 < offered <= sum(done)

    _wait_until(have_left, "the clients have left the draining server")
    return time.monotonic() - began


def last_packets(seen: list[tuple[float, Datagram]], orders: list[tuple[float, bool]]) -> list[float]:
    """Return the seconds from each order to the last packet of each connection from or to the address that it left.

    An order has its time, and whether clients left the VIP. The next order brings them back, so packets count until then.
    """
    delays: list[float] = []
    for (ordered, left_vip), (end, _) in pairwise([*orders, (float("inf"), False)]):
        last: dict[int, float] = {}
        for when, datagram in seen:
            is_at_vip = ip_address(datagram.remote) == ip_address(QUIC_VIP6)
            if ordered <= when < end and is_at_vip == left_vip:
                last[datagram.local[1]] = when - ordered
        delays += last.values()
    return delays


def _timed(pcap: Path) -> list[tuple[float, Datagram]]:
    """Return the datagrams of a capture with their times, in seconds since the epoch."""
    with RawPcapReader(str(pcap)) as reader:
        return [(when.sec + when.usec / 1e6, read_datagram(frame)) for frame, when in reader if len(frame) == when.caplen]


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise NodeError(f"not within {LIMIT:g} s: {what}")
        time.sleep(0.05)

# SPDX-License-Identifier: Apache-2.0
"""Costs of a connection through a proxy: set-up time, bytes on the client's link, and CPU time of the proxy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from frontage_testbed.nodes import NodeError

from .masque import Masque
from .measure import COLD, PROXY, WARM
from .testbed import MASQUE, OURS, Testbed

Run = Callable[[int], list[float]]
"""Open this many connections, one after the other, and return the duration of each handshake in ms."""

MIGRATED = "warm, migrated"
"""The connection also moves to the direct path before it is closed."""
OPTIONS = {WARM: (), COLD: ("--cold",), MIGRATED: ("--migrate",)}

SETTLE = 0.5
"""Seconds until the last packets of a run have arrived."""


@dataclass(frozen=True)
class Cost:
    """Costs of connections of one kind. Bytes and CPU time are those of a further connection of a running client."""

    proxy: str
    start: str
    retry: bool
    handshake_ms: list[float]
    bytes_sent: float
    """Bytes in frames on the client's link, from the client."""
    bytes_received: float
    cpu_ms: float
    """CPU time of the proxy, in user and kernel mode."""

    @property
    def median_ms(self) -> float:
        """Median handshake time."""
        return median(self.handshake_ms)


def measure_costs(testbed: Testbed, masque: Masque, handshakes: int) -> list[Cost]:
    """Measure both proxies with names that the resolver has in its cache. Raises NodeError if a handshake fails."""
    costs = []
    for retry in (False, True):
        for start in (WARM, COLD):
            costs.append(_cost(testbed, OURS, start, retry, _ours(testbed, start, retry), handshakes))
            costs.append(_cost(testbed, MASQUE, start, retry, _masque(testbed, masque, start, retry), handshakes))
        costs.append(_cost(testbed, OURS, MIGRATED, retry, _ours(testbed, MIGRATED, retry), handshakes))
    return costs


def _ours(testbed: Testbed, start: str, retry: bool) -> Run:
    options = ("--proxy", PROXY, *OPTIONS[start])

    def run(handshakes: int) -> list[float]:
        report = testbed.load(testbed.client, *options, retry=retry, names="known{}", handshakes=handshakes)
        if report["failed"] or report["stayed"]:
            raise NodeError(f"{OURS} {start}: not all handshakes succeeded: {report['failed']} {report['stayed']}")
        return list(report["handshake_ms"])

    return run


def _masque(testbed: Testbed, masque: Masque, start: str, retry: bool) -> Run:
    def run(handshakes: int) -> list[float]:
        report = masque.run(testbed.client, testbed.folder, "known{}", retry, handshakes, cold=start == COLD)
        return list(json.loads(report)["handshake_ms"])

    return run


def _cost(testbed: Testbed, proxy: str, start: str, retry: bool, run: Run, handshakes: int) -> Cost:
    """Measure one connection, and then `handshakes` more, so that the costs of starting the client cancel."""
    few, few_costs = _measured(testbed, proxy, run, 1)
    many, many_costs = _measured(testbed, proxy, run, handshakes + 1)
    each = [(more - less) / handshakes for less, more in zip(few_costs, many_costs, strict=True)]
    return Cost(proxy, start, retry, few + many, each[0], each[1], each[2])


def _measured(testbed: Testbed, proxy: str, run: Run, handshakes: int) -> tuple[list[float], list[float]]:
    """Return the handshake times, and by how much the run has increased the counters."""
    before = _counters(testbed, proxy)
    durations = run(handshakes)
    time.sleep(SETTLE)
    return durations, [after - earlier for earlier, after in zip(before, _counters(testbed, proxy), strict=True)]


def _counters(testbed: Testbed, proxy: str) -> list[float]:
    """Return bytes sent and received on the client's link, and the CPU time of a proxy in ms."""
    shown = json.loads(testbed.client.run(["ip", "-json", "-stats", "link", "show", "dev", "eth0"]).stdout)
    link = shown[0]["stats64"]
    return [link["tx"]["bytes"], link["rx"]["bytes"], _cpu_ms(testbed.processes[proxy].pid)]


def _cpu_ms(pid: int) -> float:
    """Return the CPU time of a process's threads, of which the scheduler counts nanoseconds."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6

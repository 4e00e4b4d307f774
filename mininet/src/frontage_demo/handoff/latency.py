# SPDX-License-Identifier: Apache-2.0
"""Measures the latency of requests between client and real server, and the balancer's context switches (Fig. 10)."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from frontage_testbed.nodes import Namespace

from .testbed import FORMS, HANDOFF, PORTS, Ground, Testbed
from .topology import BALANCER_ADDRESS, Triangle

BACKGROUND, BACKGROUND_SIZE, PROBES = (0, 2, 8, 24), 300, 150
"""Background connections, bytes of their objects, and number of measured requests."""
ASKED, PADDING = 800, 1_000
"""Bytes of a measured object, and of the query of its URL. The packets of measured requests and responses are longer than
those of the background, by which the captures distinguish them.
"""
CAPTURE_DELAY = 0.2
"""Seconds until a packet is in a capture file."""


@dataclass(frozen=True)
class Latency:
    """Delays of each measured request in ms, and context switches."""

    uplink_ms: list[float]
    """From a request leaving the client to its arrival at the real server."""
    downlink_ms: list[float]
    """From a response leaving the real server to its arrival at the client."""
    switches: float
    """Context switches of the balancer per second."""

    @property
    def round_trip_ms(self) -> list[float]:
        """Return the delays of both directions, without the time at the real server, as in the paper."""
        return [up + down for up, down in zip(self.uplink_ms, self.downlink_ms, strict=True)]


Latencies: TypeAlias = dict[str, dict[str, Latency]]
"""Latencies by number of background connections, and by form."""


def measure(ground: Ground, seed: int) -> Latencies:
    """Measure all numbers of background connections. Raises NodeError."""
    with ground.testbed({}, seed) as testbed:
        return {str(count): {form: _requests(testbed, form, count) for form in FORMS} for count in BACKGROUND}


def _requests(testbed: Testbed, form: str, connections: int) -> Latency:
    """Measure requests one after the other, while `connections` other connections are busy. Raises NodeError."""
    server, client = testbed.hosts["rs1"], testbed.client
    direct = "eth1" if form == HANDOFF else "eth0"
    points = {
        "sent": (client, "eth0", f"ip6 dst {BALANCER_ADDRESS} and udp port {PORTS[form]} and greater {PADDING}"),
        "received": (server, "eth0", f"ip6 dst {Triangle.real_servers[0].address} and greater {PADDING}"),
        "answered": (server, direct, f"ip6 and (udp src port {PORTS[HANDOFF]} or tcp src port 8080) and greater {ASKED}"),
        "arrived": (client, direct, f"ip6 src {BALANCER_ADDRESS} and udp and greater {ASKED}"),
    }
    with _background(testbed, form, connections), _captures(testbed.folder, points) as times:
        began, before = time.monotonic(), context_switches(testbed.balancers[form])
        testbed.get(form, [f"{ASKED}?{'X' * PADDING}"] * (1 + PROBES))
        seconds, after = time.monotonic() - began, context_switches(testbed.balancers[form])
        time.sleep(CAPTURE_DELAY)
        found = {point: times(point) for point in points}
    up, down = (
        list(pair_delays(found[start], found[end]))[-PROBES:] for start, end in (("sent", "received"), ("answered", "arrived"))
    )
    return Latency(up, down, (after - before) / seconds)


@contextlib.contextmanager
def _background(testbed: Testbed, form: str, connections: int) -> Iterator[None]:
    """Download short objects over so many connections within a context."""
    if not connections:
        yield
        return
    command = testbed.command(form, "load", [BACKGROUND_SIZE], f"--connections={connections}", "--seconds=60")
    background = testbed.client.spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        yield
    finally:
        background.kill()
        background.wait()


@contextlib.contextmanager
def _captures(folder: Path, points: Mapping[str, tuple[Namespace, str, str]]) -> Iterator[Callable[[str], list[float]]]:
    """Capture packets at points, given as host, interface and filter, within a context.

    Yields a function that returns the times in seconds of the packets so far at a point.
    """
    with tempfile.TemporaryDirectory(dir=folder) as name, contextlib.ExitStack() as running:
        files = {point: Path(name) / point for point in points}
        for point, (host, interface, what) in points.items():
            with files[point].open("wb") as out:
                tcpdump = ["tcpdump", "-i", interface, "-nn", "-tt", "-l", "-Z", "root", "-s", "96", what]
                capture = host.spawn(tcpdump, stdout=out, stderr=out)
            running.callback(capture.wait)
            running.callback(capture.terminate)
        for file in files.values():
            while "listening on" not in file.read_text():
                time.sleep(0.02)
        yield lambda point: [float(t) for t in re.findall(r"^(\d+\.\d+) IP6", files[point].read_text(), re.MULTILINE)]


def context_switches(pid: int) -> int:
    """Return the number of context switches of a process, voluntary or not, over all its threads."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        total += sum(int(n) for n in re.findall(r"ctxt_switches:\s+(\d+)", (thread / "status").read_text()))
    return total


def pair_delays(departures: Iterable[float], arrivals: Sequence[float]) -> Iterable[float]:
    """Yield the delay in ms from each departure to the first arrival after it; times are seconds in ascending order."""
    at = 0
    for departure in departures:
        while at < len(arrivals) and arrivals[at] < departure:
            at += 1
        if at < len(arrivals):
            yield 1000 * (arrivals[at] - departure)

# SPDX-License-Identifier: Apache-2.0
"""Streams of datagrams from a server to a client, each on its own path, which show for how long packets are lost."""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ..nodes import Namespace

PORT = 7000
INTERVAL = 0.02
"""Seconds between two datagrams of a stream."""

SEND = """
import socket, sys, time
address, streams, interval = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
sockets = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(streams)]
for number, one in enumerate(sockets):
    one.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 20000 + number))
due = time.monotonic()
while True:
    for one in sockets:
        try:
            one.sendto(b"probe", (address, int(sys.argv[4])))
        except OSError:
            pass
    due += interval
    time.sleep(max(0.0, due - time.monotonic()))
"""

RECEIVE = """
import signal, socket, sys, time
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
link = socket.socket(family, socket.SOCK_DGRAM)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
link.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", int(sys.argv[2])))
print("ready", flush=True)
while True:
    _, sender = link.recvfrom(100)
    print(time.monotonic_ns(), sender[1])
"""


@dataclass(frozen=True)
class Outage:
    """The loss of packets in an interval."""

    streams: int
    """The number of streams that lost packets."""
    seconds: float
    """The longest time between two packets of a stream."""


class Probes:
    """Streams from a server to a client."""

    def __init__(self, sender: Namespace, receiver: Namespace, address: str, log: Path, streams: int = 32) -> None:
        """`log` is a file for the arrivals."""
        version = "6" if ":" in address else "4"
        self._log = log
        with log.open("wb") as file:
            self._receiver = receiver.spawn([sys.executable, "-c", RECEIVE, version, str(PORT)], stdout=file)
        while not log.read_text():
            time.sleep(0.02)
        self._sender = sender.spawn([sys.executable, "-c", SEND, address, str(streams), str(INTERVAL), str(PORT)])
        self._streams = streams

    def stop(self) -> dict[int, list[float]]:
        """Stop, and return the times at which packets arrived, by stream."""
        self._sender.terminate()
        self._sender.wait()
        time.sleep(0.5)
        self._receiver.terminate()
        self._receiver.wait()
        arrivals: dict[int, list[float]] = {20000 + number: [] for number in range(self._streams)}
        for line in self._log.read_text().splitlines():
            at, _, port = line.partition(" ")
            if port:
                arrivals[int(port)].append(int(at) / 1e9)
        return arrivals


def outage(arrivals: dict[int, list[float]], begin: float, end: float, threshold: float = 0.2) -> Outage:
    """Return what the streams lost in an interval. A stream without a packet for `threshold` seconds counts."""
    longest = []
    for times in arrivals.values():
        within = [begin, *(at for at in times if begin <= at <= end), end]
        longest.append(max(b - a for a, b in itertools.pairwise(within)))
    return Outage(sum(gap > threshold for gap in longest), max(longest))

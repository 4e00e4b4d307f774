# SPDX-License-Identifier: Apache-2.0
"""Measures the gap in delivery at each move, the time to connect to a moving host, and the throughput beside plain TCP."""

from __future__ import annotations

import math
import random
import subprocess
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from frontage_testbed.nodes import NodeError
from frontage_testbed.processes import end, serve

from .testbed import FORWARD_PORT, LOCAL_PORT, Testbed
from .topology import CLIENT, MOBILE

STEADY = Path(__file__).with_name("steady.py")
PYTHON = "/usr/bin/python3"
SETTLE = 2.0
"""Seconds before the first move and after the last one."""
INTERVALS = (1.0, 2.0)
"""Least and greatest time between moves, in seconds."""
STOP_TIMEOUT = 10.0
"""Seconds in which the receiver has to end."""
FILE_SIZE = 200_000_000
PLAIN_PORT = FORWARD_PORT + 10
"""Port of the same service without proxies."""


@dataclass(frozen=True)
class Gaps:
    """Gaps of a stream at the moves of some hosts."""

    moving: tuple[str, ...]
    milliseconds: list[float]
    """Longest time between two arrivals at each move."""
    resent: float
    """Bytes that the server sent again."""

    def quantile(self, share: float) -> float:
        """Return a quantile: the least gap that this share of the gaps does not exceed."""
        ordered = sorted(self.milliseconds)
        return ordered[math.ceil(share * len(ordered)) - 1]


@dataclass(frozen=True)
class Throughput:
    """Downloads with plain TCP and through the proxies, alternating, in bit/s."""

    plain: list[float]
    carried: list[float]


def measure_gaps(testbed: Testbed, moving: Sequence[str], moves: int, seed: int) -> Gaps:
    """Receive a stream while hosts move, at random intervals. Raises NodeError if a byte is lost or altered."""
    before = testbed.metrics(MOBILE)["resent_bytes_total"]
    pauses = [random.Random(seed + n).uniform(*INTERVALS) for n in range(moves)]
    out = testbed.folder / f"arrivals-{'-'.join(moving)}"
    command: list[str | Path] = [PYTHON, STEADY, "sink", str(LOCAL_PORT), out]
    sink = testbed.hosts[CLIENT].spawn(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(SETTLE)
    began = []
    for pause in pauses:
        began.append(min([testbed.move(host) for host in moving]))
        time.sleep(pause)
    time.sleep(SETTLE)
    sink.terminate()
    output = sink.communicate(timeout=STOP_TIMEOUT)[0].decode()
    if sink.returncode != 0:
        raise NodeError(f"the stream is damaged: {output[-500:]}")
    arrivals = [float(line) for line in out.read_text().split()]
    gaps = [1000 * gap for gap in gaps_at(arrivals, began)]
    return Gaps(tuple(moving), gaps, testbed.metrics(MOBILE)["resent_bytes_total"] - before)


def gaps_at(arrivals: Sequence[float], moves: Sequence[float]) -> Iterator[float]:
    """Yield the longest time between two arrivals from each move to the next one, all in seconds."""
    ends = [*moves[1:], arrivals[-1]]
    for began, ended in zip(moves, ends, strict=True):
        first = max(0, bisect_right(arrivals, began) - 1)
        last = bisect_right(arrivals, ended)
        window = arrivals[first:last]
        yield max(after - before for before, after in pairwise(window))


def measure_setups(testbed: Testbed, rounds: int) -> list[float]:
    """Return the times in ms until the first byte of new connections arrives, without moves."""
    command: list[str | Path] = [PYTHON, STEADY, "first", str(LOCAL_PORT)]
    return [1000 * float(testbed.hosts[CLIENT].run(command).stdout) for _ in range(rounds)]


def measure_throughput(testbed: Testbed, rounds: int) -> Throughput:
    """Download a file by curl with plain TCP and through the proxies, alternately."""
    files = testbed.folder / "www"
    files.mkdir()
    (files / "file").write_bytes(bytes(FILE_SIZE))
    command: list[str | Path] = [PYTHON, "-m", "http.server", "--directory", files, "--bind"]
    address = testbed.address(MOBILE)
    servers = [
        serve(testbed.hosts[MOBILE], "http", [*command, "127.0.0.1", str(FORWARD_PORT)], FORWARD_PORT, testbed.folder),
        serve(testbed.hosts[MOBILE], "plain", [*command, address, str(PLAIN_PORT)], PLAIN_PORT, testbed.folder),
    ]
    plain, carried = f"http://[{address}]:{PLAIN_PORT}/file", f"http://127.0.0.1:{LOCAL_PORT}/file"
    result = Throughput([], [])
    for _ in range(rounds):
        result.plain.append(_download(testbed, plain))
        result.carried.append(_download(testbed, carried))
    for server in servers:
        end(server)
    return result


def _download(testbed: Testbed, url: str) -> float:
    output = testbed.hosts[CLIENT].run(["curl", "-sS", "-o", "/dev/null", "-w", "%{speed_download} %{size_download}", url]).stdout
    speed, size = (float(word) for word in output.split())
    if size != FILE_SIZE:
        raise NodeError(f"{url}: {size:.0f} of {FILE_SIZE} bytes")
    return 8 * speed


def round_trip(testbed: Testbed) -> float:
    """Return the median round-trip time between client and mobile host, in ms."""
    output = testbed.hosts[CLIENT].run(["ping", "-n", "-c", "7", "-i", "0.1", testbed.address(MOBILE)]).stdout
    return median(float(line.split("time=")[1].split()[0]) for line in output.splitlines() if "time=" in line)


def source(testbed: Testbed) -> subprocess.Popen[bytes]:
    """Start the service that sends a steady stream."""
    return serve(testbed.hosts[MOBILE], "source", [PYTHON, STEADY, "source", str(FORWARD_PORT)], FORWARD_PORT, testbed.folder)

# SPDX-License-Identifier: Apache-2.0
"""Measures QDSR's figures."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from frontage_testbed.nodes import NodeError

from . import downloads, early, latency, single_path
from .downloads import SMALL
from .early import FirstBytes
from .latency import Latencies
from .single_path import SinglePath
from .testbed import FORMS, HANDOFF, PROXY, Ground, Programs, Testbed
from .topology import OWDS, Site, Triangle, delays

SEED = 7
"""Seed of the links' losses."""

FIRST_PACKETS = 20
PARALLEL, PARALLEL_SIZES, PARALLEL_SECONDS, PARALLEL_OWD = (1, 2, 4, 8, 16, 32), (1_000, 16_000), 3, 1
LOSSES = (0.0, 0.0001, 0.001, 0.01, 0.03, 0.1)
RATE, QUEUE = 12, 480
"""Mbit/s and packets, as in the paper's section 5.3."""
DISTANT_PROXY, DISTANT_PROXY_OWD = "proxy, same distance", (30, 0, 30)
"""A proxy whose round-trip time to clients is that between a real server's packet and its acknowledgment in A."""
FAIR_RATE, FAIR_DELAY, FAIR_QUEUE, FAIR_SECONDS, FAIR_SIZE = 20, 10, 50, 20, 500_000


@dataclass
class Result:
    """All measurements, by form (`FORMS`)."""

    first_ms: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Time to the first byte, by topology (Fig. 12)."""
    early: dict[str, FirstBytes] = field(default_factory=dict)
    """Times to the first byte of new connections, by topology."""
    rates: dict[str, dict[str, float]] = field(default_factory=dict)
    """Mbit/s, by loss rate (Fig. 13)."""
    single_path: SinglePath = field(default_factory=SinglePath)
    """Rates with a single path."""
    requests: dict[str, dict[str, float]] = field(default_factory=dict)
    """Requests per second, by size and parallelism (Fig. 9)."""
    latency: Latencies = field(default_factory=dict)
    """Delays of requests (Fig. 10)."""
    shares: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Mbit/s of two downloads that share a bottleneck, by their kinds."""

    def as_json(self) -> dict[str, Any]:
        """Return the results for `result.json`."""
        return asdict(self)


def measure(programs: Programs, scratch: Path) -> Result:
    """Measure all figures. Raises NodeError if a download is incomplete."""
    result = Result()
    sizes = [SMALL, latency.ASKED, latency.BACKGROUND_SIZE, *PARALLEL_SIZES, *(sizes_by_loss(loss)[0] for loss in LOSSES)]
    sizes += [single_path.SIZE, single_path.LOSSY_SIZE, FAIR_SIZE]
    ground = Ground(Triangle, programs, scratch, sizes)
    try:
        for name, owd in OWDS.items():
            with ground.testbed(delays(owd), SEED) as testbed:
                result.first_ms[name] = {form: _first_packets(testbed, form) for form in FORMS}
        result.early = early.measure(ground, SEED)
        with ground.testbed(delays((PARALLEL_OWD,) * 3), SEED) as testbed:
            for size in PARALLEL_SIZES:
                for parallel in PARALLEL:
                    result.requests[f"{size} x {parallel}"] = _requests(testbed, size, parallel)
        result.latency = latency.measure(ground, SEED)
        for loss in LOSSES:
            limits, many = f"rate={RATE}mbit,queue-packets={QUEUE},loss={loss}", sizes_by_loss(loss)
            with ground.testbed(delays(OWDS["A"], limits), SEED) as testbed:
                result.rates[str(loss)] = downloads.rates(testbed, FORMS, *many)
            with ground.testbed(delays(DISTANT_PROXY_OWD, limits), SEED) as testbed:
                result.rates[str(loss)][DISTANT_PROXY] = downloads.rates(testbed, [PROXY], *many)[PROXY]
        result.single_path = single_path.measure(ground, SEED)
    finally:
        ground.close()
    ground = Ground(Site, programs, scratch, sizes)
    try:
        delay = f"delay={FAIR_DELAY}ms"
        with ground.testbed({2: f"rate={FAIR_RATE}mbit,queue-packets={FAIR_QUEUE},{delay}", 3: delay}, SEED) as testbed:
            result.shares["two plain downloads"] = _share(testbed, (PROXY, 1), (PROXY, 1))
            result.shares["one from three real servers, one plain"] = _share(testbed, (HANDOFF, 3), (PROXY, 1))
            result.shares["three plain, one plain"] = _share(testbed, (PROXY, 1), (PROXY, 1), first=3)
    finally:
        ground.close()
    return result


def sizes_by_loss(loss: float) -> tuple[int, int]:
    """Return the object size in bytes and the number of downloads for a loss rate."""
    if loss <= 0.001:
        return 12_000_000, 3
    return (1_200_000, 6) if loss <= 0.01 else (600_000, 6) if loss <= 0.03 else (300_000, 6)


def _first_packets(testbed: Testbed, form: str) -> list[float]:
    """Return the times in ms to a response's first byte on an established connection.

    The first response does not count, because the client's paths may not be usable for delegation yet.
    """
    before = testbed.handed()
    lines = testbed.get(form, [SMALL] * (1 + FIRST_PACKETS))
    downloads.check(testbed, form, before, len(lines) - 1)
    return [1000 * line["seconds"]["first_byte"] for line in lines[1:]]


def _requests(testbed: Testbed, size: int, parallel: int) -> dict[str, float]:
    """Return requests per second on one connection with `parallel` in flight: the median of three turns by form."""
    rates: dict[str, list[float]] = {form: [] for form in FORMS}
    options = ("--connections=1", f"--parallel={parallel}", f"--seconds={PARALLEL_SECONDS / 3:g}")
    for turn in range(3):
        for form in FORMS if turn % 2 else reversed(FORMS):
            report = testbed.load(form, size, *options, f"--expect={size}")
            rates[form].append(report["requests"] / report["seconds"])
    return {form: median(values) for form, values in rates.items()}


def _share(testbed: Testbed, one: tuple[str, int], other: tuple[str, int], first: int = 1) -> tuple[float, float]:
    """Return the rates in Mbit/s of two competing downloads. Each is a form and its number of parallel objects per
    connection; `first` is the number of connections of the first one.
    """
    running = []
    for (form, parallel), connections in ((one, first), (other, 1)):
        options = (f"--connections={connections}", f"--parallel={parallel}", f"--seconds={FAIR_SECONDS}")
        command = testbed.command(form, "load", [FAIR_SIZE], *options)
        running.append(testbed.client.spawn(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    rates = []
    for process in running:
        output, _ = process.communicate()
        if process.returncode:
            raise NodeError(f"downloads at a bottleneck: {output.decode()}")
        summary = json.loads(output)
        rates.append(8e-6 * summary["bytes"] / summary["seconds"])
    return rates[0], rates[1]

# SPDX-License-Identifier: Apache-2.0
"""CloudCookie's Table I: CPU load of an L7 load balancer with and without CCLB7, at about a fifth of a core.

Clients have their own namespace and core.
They request web-search objects at the times of a plan, independently of earlier responses (open loop).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from balancers import BALANCERS, PORTS, Balancer, nginx, start_balancer_testbed
from frontage_demo.metrics import percentile
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.protocols import PROTOCOLS
from frontage_testbed.load.workload import plan, write_plan
from http3 import CLIENT_CORE, SERVER_CORE, VIP, Testbed
from rows import Row, finish, row

ROUNDS, SECONDS = 6, 10
"""Number of rounds and seconds of a run. A round has two runs with the same plan, with and without CCLB7."""
WARM_UP_SECONDS, WARM_UP_SEED = 5, 0
"""Seconds of load, and seed of its plan, that servers get before the first round if they run side by side."""
IDLE_SECONDS = 30
CALIBRATION_SECONDS = 5
TARGET_LOAD = 20
"""Load of the core without CCLB7 in per cent."""
START_DELAY = 1.5
"""Seconds for a client to read its plan."""
WITHOUT = "the same server without CCLB7"
STATISTICS: dict[str, Callable[[list[float]], float | None]] = {
    "mean": fmean,
    "median": median,
    "p99": lambda values: percentile(values, 0.99),
}


@dataclass(frozen=True)
class Sample:
    """Load of the server's core during about one second in per cent, including any other process on that core."""

    user: float
    """User space, sampled by the kernel's ticks."""
    kernel: float
    """All other time in which the core was not idle: system calls, interrupts, network softirqs and eBPF programs."""

    @property
    def total(self) -> float:
        return self.user + self.kernel


def samples(seconds: float) -> list[Sample]:
    """Take one sample per second."""
    result = []
    before = _core()
    for _ in range(round(seconds)):
        time.sleep(1)
        now = _core()
        elapsed, user, idle = (b - a for a, b in zip(before, now, strict=True))
        result.append(Sample(100 * user / elapsed, 100 * max(0.0, elapsed - user - idle) / elapsed))
        before = now
    return result


def _core() -> tuple[float, float, float]:
    """Return three times in seconds: now, the core's time in user space, and its time idle, waiting for a disk or stolen by the host."""
    lines = Path("/proc/stat").read_text().splitlines()
    ticks = next(line.split()[1:] for line in lines if line.startswith(f"cpu{SERVER_CORE} "))
    user, nice, _, idle, iowait, _, _, steal = (int(field) / os.sysconf("SC_CLK_TCK") for field in ticks[:8])
    return time.monotonic(), user + nice, idle + iowait + steal


@contextlib.contextmanager
def serving(testbed: Testbed, balancer: Balancer, kinds: Iterable[bool]) -> Iterator[None]:
    """Run servers without (False) and with CCLB7 (True) until the context ends."""
    with contextlib.ExitStack() as servers:
        for cclb7 in kinds:
            servers.enter_context(balancer.serve(testbed, cclb7))
        yield


def replay(testbed: Testbed, balancer: Balancer, cclb7: bool, rate: float, seed: int, seconds: float) -> list[Sample]:
    """Send the requests of a plan of `rate` bits/s to the running server; return samples of its core."""
    framing = PROTOCOLS[balancer.protocol].framing
    arrivals = plan(seed=seed, seconds=seconds, load=1, rate=rate, scale=1, clients=1, framing=framing)
    path = testbed.folder / "plan.csv"
    write_plan(arrivals, path)
    begin = time.monotonic() + START_DELAY
    options: list[str | Path] = ["--plan", path, "--client", "0", "--start-ns", str(int(begin * 1e9))]
    command = [*testbed.enter, *balancer.client(testbed), *options, "--address", VIP, "--port", str(PORTS[cclb7])]
    with (testbed.folder / "outcomes").open("w+") as output, subprocess.Popen(command, stdout=output) as client:
        time.sleep(max(0.0, begin - time.monotonic()))
        measured = samples(seconds)
        client.wait()
        output.seek(0)
        outcomes = [Outcome.from_line(line) for line in output]
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if failed or len(outcomes) != len(arrivals):
        complete = len(outcomes) - len(failed)
        raise RuntimeError(f"{balancer.name}: only {complete} of {len(arrivals)} downloads completed: {failed[:3]}")
    return measured


def compare(testbed: Testbed, balancer: Balancer) -> list[Row]:
    with serving(testbed, balancer, [False]):
        calibration = replay(testbed, balancer, False, balancer.calibration_rate, 0, CALIBRATION_SECONDS)
    rate = balancer.calibration_rate * TARGET_LOAD / fmean(sample.total for sample in calibration)
    measured: dict[bool, list[Sample]] = {False: [], True: []}
    lasting = (False, True) if balancer.side_by_side else ()
    with serving(testbed, balancer, lasting):
        for cclb7 in lasting:
            replay(testbed, balancer, cclb7, rate, WARM_UP_SEED, WARM_UP_SECONDS)
        for number in range(ROUNDS):
            for cclb7 in (False, True) if number % 2 == 0 else (True, False):
                with serving(testbed, balancer, () if lasting else [cclb7]):
                    measured[cclb7] += replay(testbed, balancer, cclb7, rate, 1 + number, SECONDS)
    return [row(f"table1_{balancer.name}_offered", rate / 1e6, "Mbit/s"), *rows_of(balancer.name, measured[True], measured[False])]


def rows_of(name: str, values: list[Sample], peers: list[Sample] | None = None) -> list[Row]:
    """Return a row for each statistic of user, kernel and total load."""
    columns, peer = ([values], None) if peers is None else ([values, peers], WITHOUT)
    result = []
    for statistic, compute in STATISTICS.items():
        for part in ("user", "kernel", "total"):
            figures = [compute([getattr(sample, part) for sample in column]) or 0.0 for column in columns]
            result.append(row(f"table1_{name}_{statistic}_{part}", figures[0], "% of a core", peer, *figures[1:]))
    return result


def measure() -> list[Row]:
    os.sched_setaffinity(0, {CLIENT_CORE})  # inherited by all processes except the servers
    with start_balancer_testbed() as testbed:
        with nginx(testbed, False):
            rows = rows_of("idle", samples(IDLE_SECONDS))
        for balancer in BALANCERS:
            rows += compare(testbed, balancer)
    return rows


if __name__ == "__main__":
    finish(measure)

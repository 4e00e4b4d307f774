# SPDX-License-Identifier: Apache-2.0
"""CloudCookie's Table I: how much of a core an L7 load balancer needs with and without CCLB7, at about a fifth of it.

Clients have a namespace and a core of their own. They ask for web-search objects at the times of a plan, whatever became of earlier
ones."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from balancers import BALANCERS, PORTS, Balancer, nginx, world
from frontage_demo.metrics import percentile
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.protocols import PROTOCOLS
from frontage_testbed.load.workload import plan, write_plan
from http3 import CLIENT_CORE, SERVER_CORE, VIP, Lab
from rows import Row, finish, row

ROUNDS, SECONDS = 4, 10
"""A round is two turns of so many seconds, with and without CCLB7, each with a fresh server and the same plan."""
IDLE_SECONDS = 30
CALIBRATION_SECONDS = 5
AIM = 20
"""Per cent of the core, without CCLB7."""
START = 1.5
"""Seconds that a client has to load its plan."""
WITHOUT = "the same server without CCLB7"
STATISTICS: dict[str, Callable[[list[float]], float | None]] = {
    "mean": fmean,
    "median": median,
    "p99": lambda values: percentile(values, 0.99),
}


@dataclass(frozen=True)
class Sample:
    """Of the server's core in about a second, per cent. Whatever else ran there is in it."""

    user: float
    """As the kernel's ticks found it."""
    kernel: float
    """The rest of the time that the core did not idle: system calls, interrupts, the network's softirqs, eBPF programs."""

    @property
    def total(self) -> float:
        return self.user + self.kernel


def samples(seconds: float) -> list[Sample]:
    """One a second."""
    found = []
    before = _core()
    for _ in range(round(seconds)):
        time.sleep(1)
        now = _core()
        elapsed, user, unused = (b - a for a, b in zip(before, now, strict=True))
        found.append(Sample(100 * user / elapsed, 100 * max(0.0, elapsed - user - unused) / elapsed))
        before = now
    return found


def _core() -> tuple[float, float, float]:
    """Seconds: now, in user space, and not running: idle, waiting for a disk, or taken by the machine's host."""
    lines = Path("/proc/stat").read_text().splitlines()
    ticks = next(line.split()[1:] for line in lines if line.startswith(f"cpu{SERVER_CORE} "))
    user, nice, _, idle, iowait, _, _, steal = (int(field) / os.sysconf("SC_CLK_TCK") for field in ticks[:8])
    return time.monotonic(), user + nice, idle + iowait + steal


def turn(here: Lab, balancer: Balancer, cclb7: bool, rate: float, seed: int, seconds: float) -> list[Sample]:
    """The samples of a fresh server's core while it answers a plan of so many bits/s."""
    framing = PROTOCOLS[balancer.protocol].framing
    arrivals = plan(seed=seed, seconds=seconds, load=1, rate=rate, scale=1, clients=1, framing=framing)
    path = here.folder / "plan.csv"
    write_plan(arrivals, path)
    with balancer.serve(here, cclb7):
        begin = time.monotonic() + START
        what: list[str | Path] = ["--plan", path, "--client", "0", "--start-ns", str(int(begin * 1e9))]
        command = [*here.enter, *balancer.client(here), *what, "--address", VIP, "--port", str(PORTS[cclb7])]
        with (here.folder / "outcomes").open("w+") as said, subprocess.Popen(command, stdout=said) as client:
            time.sleep(max(0.0, begin - time.monotonic()))
            found = samples(seconds)
            client.wait()
            said.seek(0)
            outcomes = [Outcome.from_line(line) for line in said]
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if failed or len(outcomes) != len(arrivals):
        whole = len(outcomes) - len(failed)
        raise RuntimeError(f"{whole} of {len(arrivals)} downloads of {balancer.name} came whole: {failed[:3]}")
    return found


def compare(here: Lab, balancer: Balancer) -> list[Row]:
    tried = turn(here, balancer, False, balancer.trial, 0, CALIBRATION_SECONDS)
    rate = balancer.trial * AIM / fmean(sample.total for sample in tried)
    found: dict[bool, list[Sample]] = {False: [], True: []}
    for number in range(ROUNDS):
        for cclb7 in (False, True) if number % 2 == 0 else (True, False):
            found[cclb7] += turn(here, balancer, cclb7, rate, 1 + number, SECONDS)
    return [row(f"table1_{balancer.name}_offered", rate / 1e6, "Mbit/s"), *rows_of(balancer.name, found[True], found[False])]


def rows_of(name: str, values: list[Sample], peers: list[Sample] | None = None) -> list[Row]:
    """Each statistic of each part."""
    columns, peer = ([values], None) if peers is None else ([values, peers], WITHOUT)
    result = []
    for statistic, of in STATISTICS.items():
        for part in ("user", "kernel", "total"):
            figures = [of([getattr(sample, part) for sample in column]) or 0.0 for column in columns]
            result.append(row(f"table1_{name}_{statistic}_{part}", figures[0], "% of a core", peer, *figures[1:]))
    return result


def measure() -> list[Row]:
    os.sched_setaffinity(0, {CLIENT_CORE})  # and all that it starts, but the servers
    with world() as here:
        with nginx(here, False):
            rows = rows_of("idle", samples(IDLE_SECONDS))
        for balancer in BALANCERS:
            rows += compare(here, balancer)
    return rows


if __name__ == "__main__":
    finish(measure)

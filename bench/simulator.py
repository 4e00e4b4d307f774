# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of the simulator.

The speed is the number of packets that P4 programs process per second of core time.
It is measured in the paper's testbed over TCP and QUIC, and with plain routers, which ns-3 simulates with the same network and flows.
Two threads are compared with one, per second of real time, and with two runs at once, which show what the machine can gain.
"""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import dumbbell
from frontage_sim.grid import Run
from frontage_sim.resolve import resolve
from frontage_sim.scenario import Scenario
from frontage_sim.switches import Program
from paths import P4, ROOT, WORK, program
from rows import Row, finish, row
from sites import compiled

ROUNDS = 3
NS3 = ("ns3-internet", "ns3-point-to-point")
NO_NS3 = "no ns-3 to compare with: apt-get install libns3-dev g++ pkg-config, or set PKG_CONFIG_PATH to its folder"
UNIT = "packets/s of core time"
REAL_TIME = "packets/s"
THREADS = 2
LONG_FLOWS = ROOT / "experiments" / "simulator" / "examples" / "long_flows.json"
SECOND = 10**9
TRANSPORTS = {
    "tcp": {"min_rto": "5ms", "initial_rto": "20ms"},
    "quic": {"protocol": "quic", "initial_rtt": "10ms", "max_ack_delay": "1ms"},
}


@dataclass(frozen=True)
class Outcome:
    """Results of a run of our simulator or of ns-3."""

    core_seconds: float
    """Core time of the events, without reading the scenario and building the network."""
    wall_seconds: float
    """Real time of the events."""
    packets: int
    """Packets that arrived at a switch or router. A packet counts once for each of them."""
    bytes: int
    """Bytes of all responses."""
    mean_fct: float
    """Mean time in seconds from the first SYN to the last byte of a flow."""

    @property
    def rate(self) -> float:
        return self.packets / self.core_seconds

    @property
    def real_rate(self) -> float:
        return self.packets / self.wall_seconds


def testbed(transport: dict[str, str], frontage: Program) -> dict[str, Any]:
    """Return CloudCookie's testbed (section V) with frontage.p4 in each of the three switches of a path."""
    workload = {"sizes": "websearch", "load": 0.5, "duration": "300ms"}
    scenario = Scenario.model_validate({"title": "the testbed", "transport": transport, "workload": workload})
    return resolve(Run({}, 1, scenario), frontage)


def simulate(scenario: dict[str, Any], folder: Path, threads: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run our simulator with ``folder`` for its results; return summary and timing."""
    simulator = program("FRONTAGE_SIMULATOR", "frontage-simulator")
    command: list[str | Path] = [simulator, "run", "-", "--out", folder, "--threads", str(threads)]
    subprocess.run(command, input=json.dumps(scenario), text=True, check=True)
    summary, timing = (json.loads((folder / f"{name}.json").read_text()) for name in ("summary", "timing"))
    return summary, timing


def run_simulator(scenario: dict[str, Any], folder: Path, threads: int = 1) -> Outcome:
    """Run our simulator with ``folder`` for its results. Raises RuntimeError if a flow did not complete."""
    summary, timing = simulate(scenario, folder, threads)
    if summary["flows"]["ended"] != summary["flows"]["begun"]:
        raise RuntimeError(f"some flows did not complete: {summary['flows']}")
    with (folder / "flows.csv").open() as file:
        flows = list(csv.DictReader(file))
    fct = fmean(int(flow["end"]) - int(flow["start"]) for flow in flows) / 1e9
    seconds = timing["core_seconds"], timing["wall_seconds"]
    return Outcome(*seconds, summary["packets"]["p4"], sum(int(flow["size"]) for flow in flows), fct)


def run_at_once(scenario: dict[str, Any], folder: Path, count: int) -> float:
    """Run our simulator several times at once; return the packets of all runs per second of real time."""
    with ThreadPoolExecutor(count) as pool:
        runs = list(pool.map(lambda n: run_simulator(scenario, folder / f"{n}"), range(count)))
    return sum(run.packets for run in runs) / max(run.wall_seconds for run in runs)


def build_ns3() -> tuple[str, Path] | None:
    """Compile our scenario for ns-3; return the name of the peer and the program, or None if ns-3 is not installed."""
    tools = [shutil.which(tool) for tool in ("c++", "pkg-config")]
    if None in tools or subprocess.run(["pkg-config", "--exists", *NS3], check=False).returncode != 0:
        return None
    # Debian's pkg-config file contains paths of third-party libraries that do not exist.
    flags = _pkg_config("--cflags", "--libs-only-L", "--libs-only-l", *NS3)
    target = WORK / "ns3-dumbbell"
    WORK.mkdir(parents=True, exist_ok=True)
    source = ROOT / "bench" / "ns3" / "dumbbell.cc"
    subprocess.run(["c++", "-O3", "-march=native", "-o", target, source, *flags], check=True)
    return f"ns-3 {_pkg_config('--modversion', 'ns3-core')[0]}", target


def _pkg_config(*arguments: str) -> Sequence[str]:
    return shlex.split(subprocess.run(["pkg-config", *arguments], capture_output=True, text=True, check=True).stdout)


def run_ns3(binary: Path, flows: Path, expected: Outcome) -> Outcome:
    """Run ns-3 with the flows of our run. Raises RuntimeError if it transfers other bytes."""
    command: list[str | Path] = [binary, f"--flows={flows}", *dumbbell.options()]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    if report["complete"] != report["flows"] or report["bytes"] != expected.bytes:
        raise RuntimeError(f"ns-3 transferred other bytes: {report}, expected {expected}")
    seconds = report["core_seconds"]  # it has one thread, and does not wait
    return Outcome(seconds, seconds, report["packets"], report["bytes"], report["mean_fct"])


def routers(frontage: Program, folder: Path) -> list[Row]:
    """Return the rows of plain routers. Runs of our simulator and of ns-3 alternate."""
    router, _ = compiled(ROOT / "softswitch" / "pipeline" / "tests" / "programs" / "router.p4")
    scenario, peer = dumbbell.resolved(frontage, router), build_ns3()
    if peer is None:
        print(NO_NS3, file=sys.stderr)
    ours, threaded, theirs = [], [], []
    for _ in range(ROUNDS):
        threaded.append(run_simulator(scenario, folder, THREADS))
        ours.append(run_simulator(scenario, folder))
        if peer:
            theirs.append(run_ns3(peer[1], folder / "flows.csv", ours[-1]))
    name = peer[0] if peer else None
    rates = [median(run.rate for run in runs) for runs in (ours, theirs) if runs]
    packets = [float(runs[0].packets) for runs in (ours, theirs) if runs]
    fct = [1e6 * runs[0].mean_fct for runs in (ours, theirs) if runs]
    return [
        row("simulator_router_pps", rates[0], UNIT, name, *rates[1:]),
        row("simulator_router_threads_pps", median(run.real_rate for run in threaded), REAL_TIME, name, *rates[1:]),
        row("simulator_router_packets", packets[0], "packets", name, *packets[1:]),
        row("simulator_router_mean_fct", fct[0], "us", name, *fct[1:]),
    ]


def testbeds(protocol: str, scenario: dict[str, Any], folder: Path) -> list[Row]:
    """Return the rows of the paper's testbed. Runs with one thread, with two, and several at once alternate."""
    alone, threaded, at_once = [], [], []
    for _ in range(ROUNDS):
        alone.append(run_simulator(scenario, folder))
        threaded.append(run_simulator(scenario, folder, THREADS).real_rate)
        at_once.append(run_at_once(scenario, folder, THREADS))
    name, real = f"simulator_testbed_{protocol}", median(run.real_rate for run in alone)
    return [
        row(f"{name}_pps", median(run.rate for run in alone), UNIT),
        row(f"{name}_threads_pps", median(threaded), REAL_TIME, "one thread", real),
        row(f"{name}_at_once_pps", median(at_once), REAL_TIME, "one thread", real),
    ]


def memory(folder: Path) -> list[Row]:
    """Return the peak memory of two runs with a million flows: with all flows active at the end, and with few at a time."""
    at_once = json.loads(LONG_FLOWS.read_text())
    (flows,) = at_once["workload"]
    short = flows | {"arrivals": {"poisson": 100_000}, "sizes": {"fixed": 1000}, "stop": 10 * SECOND}
    in_turn = at_once | {"end": None, "workload": [short]}
    rows = []
    for name, scenario in {"at_once": at_once, "in_turn": in_turn}.items():
        summary, timing = simulate(scenario, folder)
        rows += [
            row(f"simulator_memory_{name}", timing["peak_memory_bytes"] / 1e6, "MB"),
            row(f"simulator_memory_{name}_flows", summary["flows"]["begun"], "flows"),
        ]
    return rows


def measure() -> list[Row]:
    frontage = Program(P4 / "frontage.p4info.txtpb", P4 / "frontage.json")
    rows = []
    with tempfile.TemporaryDirectory(prefix="frontage-bench-") as name:
        folder = Path(name)
        for protocol, transport in TRANSPORTS.items():
            rows += testbeds(protocol, testbed(transport, frontage), folder)
        return rows + routers(frontage, folder) + memory(folder)


if __name__ == "__main__":
    finish(measure)

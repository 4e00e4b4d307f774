# SPDX-License-Identifier: Apache-2.0
"""Packet simulations as jobs: each run of a scenario is one execution of ``frontage-simulator``."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from frontage_sim.grid import Run, runs
from frontage_sim.jobs import TIMING, Job, SimulationError, hash_file, input_file
from frontage_sim.overlay import build
from frontage_sim.paths import BUILD, REPOSITORY
from frontage_sim.plan import Plan, Work
from frontage_sim.resolve import resolve
from frontage_sim.scenario import Program as ProgramVariant
from frontage_sim.scenario import load
from frontage_sim.switches import Program

PROGRESS_STEP = 0.01
"""Share of a run after which it reports its progress again."""

COLUMNS: Mapping[str, Mapping[str, type[pl.DataType]]] = {
    "flows": {
        "id": pl.Int64,
        "label": pl.String,
        "client": pl.String,
        "server": pl.String,
        "size": pl.Int64,
        "start": pl.Int64,
        "end": pl.Int64,
        "retransmitted": pl.Int64,
        "timeouts": pl.Int64,
    },
    "queues": {
        "time": pl.Int64,
        "queue": pl.String,
        "packets": pl.Int64,
        "bytes": pl.Int64,
        "dropped": pl.Int64,
        "lost": pl.Int64,
    },
    "loads": {"time": pl.Int64, "server": pl.String, "n_af": pl.Int64, "n_ff": pl.Int64},
    "throughput": {"time": pl.Int64, "flow": pl.Int64, "received": pl.Int64},
}
"""Columns of a run's tables, in bytes and nanoseconds of simulated time."""


def project_file(variable: str, default: Path) -> Path:
    """Return the file that an environment variable names, or else the default, relative to the repository."""
    path = Path(os.environ.get(variable, REPOSITORY / default)).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{path}: file not found: run `make setup`, or set {variable}")
    return path


def simulator() -> Path:
    """Return the path of the simulator's binary, which FRONTAGE_SIMULATOR overrides."""
    return project_file("FRONTAGE_SIMULATOR", Path("target/release/frontage-simulator"))


def shipped_program() -> Program:
    """Return the project's compiled P4 program, which FRONTAGE_P4INFO and FRONTAGE_P4 override."""
    p4 = Path("build/p4")
    return Program(project_file("FRONTAGE_P4INFO", p4 / "frontage.p4info.txtpb"), project_file("FRONTAGE_P4", p4 / "frontage.json"))


def program(run: Run, file: Path) -> Program:
    """Return the P4 program of a run: the project's, or one that the scenario modifies. FRONTAGE_P4C overrides the compiler."""
    variant = run.scenario.program
    if variant == ProgramVariant():
        return shipped_program()
    compiler = project_file("FRONTAGE_P4C", Path("target/release/softswitch-p4c"))
    return build(variant, file, REPOSITORY / "p4src", compiler, BUILD / "p4" / "edited")


class PacketPlan(Plan):
    """The runs of a scenario."""

    table = "flows"
    in_python = False

    def __init__(self, file: Path, full: bool) -> None:
        self._file = file
        scenario = load(file)
        self._runs = runs(scenario, file, full)
        self.title = scenario.title
        self.folder = file.stem + ("-full" if full else "")
        self.labels = {run.name: {**run.labels, "seed": run.seed} for run in self._runs}

    def work(self) -> Work:
        binary = simulator()
        programs = [program(run, self._file) for run in self._runs]
        hashes = {file: hash_file(file) for file in {binary, *(program.json_file for program in programs)}}
        jobs = (packet_job(run, program, binary, hashes) for run, program in zip(self._runs, programs, strict=True))
        return Work({digest: file for file, digest in hashes.items()}, jobs)


@dataclass(frozen=True)
class PacketJob(Job):
    """An execution of the simulator."""

    simulator: str
    """The hash of the binary."""
    program: str
    """The hash of the compiled P4 program, which is also its path in the resolved scenario."""
    resolved: bytes
    """The resolved scenario, compressed by zlib."""
    seconds: float
    """Seconds of simulated time in which flows arrive."""

    def run(self, inputs: Path, report: Callable[[float], None]) -> dict[str, bytes]:
        with TemporaryDirectory(dir=inputs) as folder:
            out = Path(folder)
            input_file(inputs, self.program)
            command: list[str | Path] = [input_file(inputs, self.simulator), "run", "-", "--out", out, "--progress"]
            _execute(command, zlib.decompress(self.resolved), inputs, self.seconds, report)
            tables = {f"{name}.parquet": _parquet(out / f"{name}.csv", name) for name in COLUMNS if (out / f"{name}.csv").exists()}
            return tables | {name: (out / name).read_bytes() for name in ("summary.json", TIMING)}


def packet_job(run: Run, program: Program, simulator: Path, hashes: Mapping[Path, str]) -> PacketJob:
    """Return the job of a run, with the hashes of the program's and the simulator's files."""
    binary, compiled = hashes[simulator], hashes[program.json_file]
    text = json.dumps(resolve(run, program) | {"programs": {"frontage": compiled}}).encode()
    digest = hashlib.sha256(binary.encode() + text).hexdigest()
    return PacketJob(run.name, digest, binary, compiled, zlib.compress(text), run.scenario.workload.duration / 1e9)


def _execute(command: list[str | Path], text: bytes, folder: Path, seconds: float, report: Callable[[float], None]) -> None:
    """Execute the simulator in a folder, with a scenario as its input."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin and process.stdout and process.stderr
    with suppress(BrokenPipeError):  # the simulator's error output explains it
        process.stdin.write(text)
        process.stdin.close()
    reported = 0.0
    for line in process.stdout:
        share = float(line) / seconds
        if reported + PROGRESS_STEP <= share < 1:
            report(share)
            reported = share
    errors = process.stderr.read().decode(errors="replace").strip()
    status = process.wait()
    if status < 0:
        raise ChildProcessError(f"signal {-status} ended the simulator")  # such as the kernel's, if the memory is exhausted
    if status > 0:
        raise SimulationError(errors or f"the simulator exited with status {status}")


def _parquet(csv: Path, table: str) -> bytes:
    """Return a table of the simulator as a Parquet file."""
    buffer = BytesIO()
    pl.read_csv(csv, schema=COLUMNS[table]).rechunk().write_parquet(buffer)  # one chunk, whatever the number of cores
    return buffer.getvalue()

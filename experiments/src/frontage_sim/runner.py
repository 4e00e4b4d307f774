"""Runs simulations side by side, shows how far they are, and keeps what is finished, so that an interrupted scenario goes on."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from frontage_sim.grid import Run
from frontage_sim.resolve import resolve
from frontage_sim.switches import Program

RESOLVED = "resolved.sha256"
"""In the folder of a finished run: of what it simulated, and of the simulator."""


class SimulationError(RuntimeError):
    """The simulator refused a run or died of it."""


def run_all(runs: Sequence[Run], program: Program, simulator: Path, out: Path, workers: int | None = None) -> None:
    """Simulates every run that ``out`` does not hold already, each into the folder of its name."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.1f}/{task.total} runs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    version = hashlib.sha256(simulator.read_bytes() + program.json_file.read_bytes()).hexdigest()
    resolving = Lock()  # whose cache is filled once
    with Progress(*columns) as progress, ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        task = progress.add_task(out.name, total=len(runs))

        def one(run: Run) -> None:
            with resolving:
                text = json.dumps(resolve(run, program))
            seconds = run.scenario.workload.duration / 1e9
            simulate(text, seconds, version, simulator, out / run.name, lambda share: progress.advance(task, share))

        for done in [pool.submit(one, run) for run in runs]:
            done.result()


def simulate(resolved: str, seconds: float, version: str, simulator: Path, folder: Path, advance: Callable[[float], None]) -> None:
    """One run of about so many simulated seconds. It stands in its folder whole or not at all."""
    digest = hashlib.sha256((version + resolved).encode()).hexdigest()
    if (folder / RESOLVED).exists() and (folder / RESOLVED).read_text() == digest:
        advance(1)
        return
    making = folder.with_name(folder.name + ".part")
    for stale in (making, folder):
        shutil.rmtree(stale, ignore_errors=True)
    making.mkdir(parents=True)
    command: list[str | Path] = [simulator, "run", "-", "--out", making, "--progress"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout and process.stderr
    with suppress(BrokenPipeError):  # its own words say more
        process.stdin.write(resolved)
        process.stdin.close()
    reached = 0.0
    for line in process.stdout:
        share = min(float(line) / seconds, 1.0)
        advance(share - reached)
        reached = share
    complaint = process.stderr.read().strip()
    if process.wait() != 0:
        raise SimulationError(f"{folder.name}: {complaint or f'the simulator ended with {process.returncode}'}")
    (making / RESOLVED).write_text(digest)
    making.rename(folder)
    advance(1 - reached)

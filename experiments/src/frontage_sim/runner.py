# SPDX-License-Identifier: Apache-2.0
"""Runs simulations in parallel with a progress display, and keeps finished ones, so that an interrupted scenario can resume."""

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
"""File in the folder of a finished run with the hash of its input and of the simulator."""


class SimulationError(RuntimeError):
    """The simulator rejected a run or crashed."""


def run_all(
    runs: Sequence[Run], programs: Sequence[Program], simulator: Path, out: Path, finished: Path, workers: int | None = None
) -> None:
    """Simulate every run with its program into a folder of ``out`` named after the run, unless that folder is complete.

    Figures share runs: a run that another scenario in ``finished`` has simulated is copied.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.1f}/{task.total} runs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    versions = {
        program: hashlib.sha256(simulator.read_bytes() + program.json_file.read_bytes()).hexdigest() for program in set(programs)
    }
    resolving = Lock()  # so that the threads fill the cache of `resolve` only once
    folders = {file.read_text(): file.parent for file in finished.glob(f"*/*/{RESOLVED}")}
    with Progress(*columns) as progress, ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        task = progress.add_task(out.name, total=len(runs))

        def run_single(run: Run, program: Program) -> None:
            with resolving:
                text = json.dumps(resolve(run, program))
            seconds = run.scenario.workload.duration / 1e9
            digest = hashlib.sha256((versions[program] + text).encode()).hexdigest()
            folder, twin = out / run.name, folders.get(digest)
            if is_complete(folder, digest):
                progress.advance(task)
                return
            partial = folder.with_name(folder.name + ".part")
            for stale in (partial, folder):
                shutil.rmtree(stale, ignore_errors=True)
            if twin is not None and is_complete(twin, digest):
                shutil.copytree(twin, partial)
                progress.advance(task)
            else:
                simulate(text, seconds, simulator, partial, lambda share: progress.advance(task, share))
                (partial / RESOLVED).write_text(digest)
            partial.rename(folder)

        for future in [pool.submit(run_single, *pair) for pair in zip(runs, programs, strict=True)]:
            future.result()


def is_complete(folder: Path, digest: str) -> bool:
    """Return true if the folder contains the complete run with this digest."""
    return (folder / RESOLVED).exists() and (folder / RESOLVED).read_text() == digest


def simulate(resolved: str, seconds: float, simulator: Path, folder: Path, advance: Callable[[float], None]) -> None:
    """Run the simulator with ``seconds`` of simulated time; its results go to a new folder."""
    folder.mkdir(parents=True)
    command: list[str | Path] = [simulator, "run", "-", "--out", folder, "--progress"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout and process.stderr
    with suppress(BrokenPipeError):  # the simulator's error output explains it
        process.stdin.write(resolved)
        process.stdin.close()
    reached = 0.0
    for line in process.stdout:
        share = min(float(line) / seconds, 1.0)
        advance(share - reached)
        reached = share
    errors = process.stderr.read().strip()
    if process.wait() != 0:
        raise SimulationError(f"{folder.stem}: {errors or f'the simulator exited with status {process.returncode}'}")
    advance(1 - reached)

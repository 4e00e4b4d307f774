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
    """Simulate every run with its program, each into the folder of its name, unless ``out`` has it already.

    A run that another scenario below ``finished`` has simulated is copied: figures share runs.
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
    resolving = Lock()  # fills the cache of `resolve` only once
    known = {file.read_text(): file.parent for file in finished.glob(f"*/*/{RESOLVED}")}
    with Progress(*columns) as progress, ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        task = progress.add_task(out.name, total=len(runs))

        def run_single(run: Run, program: Program) -> None:
            with resolving:
                text = json.dumps(resolve(run, program))
            seconds = run.scenario.workload.duration / 1e9
            digest = hashlib.sha256((versions[program] + text).encode()).hexdigest()
            folder, twin = out / run.name, known.get(digest)
            if is_of(folder, digest):
                progress.advance(task)
                return
            making = folder.with_name(folder.name + ".part")
            for stale in (making, folder):
                shutil.rmtree(stale, ignore_errors=True)
            if twin is not None and is_of(twin, digest):
                shutil.copytree(twin, making)
                progress.advance(task)
            else:
                simulate(text, seconds, simulator, making, lambda share: progress.advance(task, share))
                (making / RESOLVED).write_text(digest)
            making.rename(folder)

        for done in [pool.submit(run_single, *pair) for pair in zip(runs, programs, strict=True)]:
            done.result()


def is_of(folder: Path, digest: str) -> bool:
    """Return true if a folder holds the complete run of this digest."""
    return (folder / RESOLVED).exists() and (folder / RESOLVED).read_text() == digest


def simulate(resolved: str, seconds: float, simulator: Path, folder: Path, advance: Callable[[float], None]) -> None:
    """Simulate a run of ``seconds`` simulated seconds into a new folder."""
    folder.mkdir(parents=True)
    command: list[str | Path] = [simulator, "run", "-", "--out", folder, "--progress"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout and process.stderr
    with suppress(BrokenPipeError):  # the simulator's own message explains it
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

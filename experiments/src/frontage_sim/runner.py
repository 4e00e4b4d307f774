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


def run_all(
    runs: Sequence[Run], programs: Sequence[Program], simulator: Path, out: Path, finished: Path, workers: int | None = None
) -> None:
    """Simulates every run, with its program, that ``out`` does not hold already, each into the folder of its name. What a scenario below
    ``finished`` has simulated already is taken from there: figures share what they have in common."""
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
    resolving = Lock()  # whose cache is filled once
    known = {file.read_text(): file.parent for file in finished.glob(f"*/*/{RESOLVED}")}
    with Progress(*columns) as progress, ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        task = progress.add_task(out.name, total=len(runs))

        def one(run: Run, program: Program) -> None:
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

        for done in [pool.submit(one, *pair) for pair in zip(runs, programs, strict=True)]:
            done.result()


def is_of(folder: Path, digest: str) -> bool:
    """True if a folder holds the run of this digest, whole."""
    return (folder / RESOLVED).exists() and (folder / RESOLVED).read_text() == digest


def simulate(resolved: str, seconds: float, simulator: Path, folder: Path, advance: Callable[[float], None]) -> None:
    """One run of about so many simulated seconds, into a folder that is not there yet."""
    folder.mkdir(parents=True)
    command: list[str | Path] = [simulator, "run", "-", "--out", folder, "--progress"]
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
        raise SimulationError(f"{folder.stem}: {complaint or f'the simulator ended with {process.returncode}'}")
    advance(1 - reached)

# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of a sweep that have not finished yet, with a progress bar, and stores each result when it arrives."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, Future, as_completed
from math import fsum
from pathlib import Path
from threading import Lock

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from frontage_sim.jobs import Job, SimulationError, VersionError
from frontage_sim.machines import Machines

INPUTS = "inputs.sha256"
"""File in the folder of a finished job with the job's digest."""
ESTIMATE_SECONDS = 600
"""Period whose speed determines the remaining time."""


class Bar:
    """A progress bar in jobs. A job that runs counts by its completed share."""

    def __init__(self, progress: Progress, title: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total)
        self._shares: dict[str, float] = {}
        self._lock = Lock()

    def report(self, name: str, share: float) -> None:
        """Set the completed share of a job; 1 is final."""
        with self._lock:
            if self._shares.get(name) != 1:
                self._shares[name] = share
                self._show()

    def start(self) -> None:
        """Start to measure time: jobs that are complete by now say nothing about the remaining time."""
        with self._lock:
            self._progress.reset(self._task)
            self._show()

    def _show(self) -> None:
        self._progress.update(self._task, completed=fsum(self._shares.values()))


def finish(jobs: Iterable[Job], total: int, out: Path, finished: Path, machines: Machines) -> None:
    """Run every job, and store its results in a folder of ``out`` named after the job, unless that folder is complete.

    Sweeps share jobs: one that another sweep in ``finished`` has run is copied. If a job fails, raises SimulationError after all others
    have finished.
    """
    folders = {file.read_text(): file.parent for file in finished.glob(f"*/*/{INPUTS}")}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.1f}/{task.total} runs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, speed_estimate_period=ESTIMATE_SECONDS) as progress:
        bar = Bar(progress, out.name, total)
        with machines(bar.report) as submit:
            running = {}
            for job in jobs:
                folder, twin = out / job.name, folders.get(job.digest)
                if not is_complete(folder, job.digest):
                    if twin is None or not is_complete(twin, job.digest):
                        running[submit(job)] = job
                        continue
                    store(folder, job.digest, {file.name: file.read_bytes() for file in twin.iterdir() if file.name != INPUTS})
                bar.report(job.name, 1)
            bar.start()
            failures = [failure for future in as_completed(running) if (failure := _take(running.pop(future), future, out, bar))]
    if failures:
        raise SimulationError(f"{len(failures)} of {total} runs failed:\n" + "\n".join(failures))


def _take(job: Job, future: Future[Mapping[str, bytes] | SimulationError], out: Path, bar: Bar) -> str | None:
    """Store the results of a job, or return the reason of its failure."""
    try:
        result = future.result()
    except CancelledError:
        raise SimulationError("the connection to the cluster is lost: repeat the command to resume") from None
    except Exception as error:
        return f"{job.name}: {type(error).__name__}: {error}"
    if isinstance(result, VersionError):
        raise result  # all jobs of that machine would fail
    if isinstance(result, SimulationError):
        return f"{job.name}: {result}"
    store(out / job.name, job.digest, result)
    bar.report(job.name, 1)
    return None


def store(folder: Path, digest: str, files: Mapping[str, bytes]) -> None:
    """Write the results of a job. The folder appears only when it is complete."""
    partial = folder.with_name(folder.name + ".part")
    for stale in (partial, folder):
        shutil.rmtree(stale, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, content in files.items():
        (partial / name).write_bytes(content)
    (partial / INPUTS).write_text(digest)
    partial.rename(folder)


def is_complete(folder: Path, digest: str) -> bool:
    """Return true if the folder contains the complete results of the job with this digest."""
    return (folder / INPUTS).exists() and (folder / INPUTS).read_text() == digest

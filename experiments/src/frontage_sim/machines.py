# SPDX-License-Identifier: Apache-2.0
"""The machine of the user, which runs jobs in threads or processes. `frontage_sim.cluster` runs the same jobs on other machines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from frontage_sim.jobs import Job, SimulationError, attempt

Report = Callable[[str, float], None]
"""Takes the name of a job and its completed share."""
Submit = Callable[[Job], "Future[Mapping[str, bytes] | SimulationError]"]
"""Runs a job soon."""
Machines = Callable[[Report], AbstractContextManager[Submit]]
"""Provides machines for jobs until the end of the context."""


@contextmanager
def this_machine(
    inputs: Mapping[str, Path], scratch: Path, workers: int | None, in_python: bool, report: Report
) -> Iterator[Submit]:
    """Run jobs on this machine, on ``workers`` cores (default: all).

    ``inputs`` are the files that jobs need, by hash. The folder ``scratch`` is for temporary files; an existing one is replaced. Jobs that
    compute in Python (``in_python``) run in processes, jobs that wait for a program in threads.
    """
    scratch = scratch.absolute()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for digest, file in inputs.items():
        (scratch / digest).symlink_to(file.absolute())
    workers = workers or os.cpu_count() or 1
    in_processes = in_python and workers > 1
    # Spawned, not forked: polars has threads, and a forked process would never get the locks that they hold.
    pool: Executor = ProcessPoolExecutor(workers, get_context("spawn")) if in_processes else ThreadPoolExecutor(workers)
    try:
        yield lambda job: pool.submit(attempt, job, scratch, _ignore if in_processes else partial(report, job.name))
    finally:
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(scratch, ignore_errors=True)


def _ignore(_: float) -> None:
    """Take a report that cannot leave its process."""

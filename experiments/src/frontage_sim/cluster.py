# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster, whose workers run jobs. They need the same version of ``frontage-sim``, but no common file system.

The simulator and the compiled programs come from the user's machine, once per worker.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from distributed import Client, Worker, WorkerPlugin, get_worker

from frontage_sim.jobs import Job, SimulationError, VersionError, attempt, code_hash
from frontage_sim.machines import Report, Submit

ADDRESS = re.compile(r"(tcp|tls)://.+:\d+")
FOLDER = "frontage-sim"
"""Folder of the inputs, in the worker's own folder."""
CONNECT_TIMEOUT = "30s"
RETRIES = 2
"""Retries of a job that fails for a reason other than its input, for example because a disk is full."""


class Inputs(WorkerPlugin):
    """Writes the inputs of jobs to the folder of every worker, also of workers that join later."""

    idempotent = True  # a later sweep with the same files does not send them again

    def __init__(self, files: Mapping[str, Path]) -> None:
        self.contents = {digest: file.read_bytes() for digest, file in files.items()}
        self.name = f"{FOLDER}-{hashlib.sha256(' '.join(sorted(files)).encode()).hexdigest()}"

    def setup(self, worker: Worker) -> None:
        folder = Path(worker.local_directory, FOLDER)
        folder.mkdir(exist_ok=True)
        for digest, content in self.contents.items():
            partial = folder / f"{digest}.part"
            partial.write_bytes(content)
            partial.chmod(0o755)  # one of the inputs is a program
            partial.rename(folder / digest)


def run_on_worker(job: Job, code: str, topic: str) -> Mapping[str, bytes] | SimulationError:
    """Run a job on the worker that executes this task, and report its progress under ``topic``."""
    worker = get_worker()
    if code_hash() != code:
        return VersionError(
            f"worker {worker.address} has another version of frontage-sim, its libraries or Python: "
            "install the commit and the requirements.lock of this machine there"
        )

    def report(share: float) -> None:
        worker.log_event(topic, (job.name, share))

    return attempt(job, Path(worker.local_directory, FOLDER), report)


@contextmanager
def cluster(address: str, inputs: Mapping[str, Path], report: Report) -> Iterator[Submit]:
    """Run jobs on the workers of the cluster whose scheduler has this address, for example ``tcp://10.0.0.1:8786``.

    ``inputs`` are the files that jobs need, by hash. Jobs of a worker that dies run elsewhere. Raises SimulationError for an invalid
    address, if the scheduler does not answer, and if a worker cannot take the inputs.
    """
    if not ADDRESS.fullmatch(address):
        raise SimulationError(f'invalid address "{address}": use tcp://HOST:PORT or tls://HOST:PORT')
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except OSError as error:
        raise SimulationError(f"{address}: no Dask scheduler answers: {error}: start one with `dask scheduler`") from None
    topic = f"{FOLDER}-{uuid4()}"

    def on_event(event: tuple[float, Any]) -> None:
        report(*event[1])

    with client:
        try:
            client.register_plugin(Inputs(inputs))
        except Exception as error:  # whatever the worker raised
            raise SimulationError(f"{address}: a worker cannot take the simulator: {error}: install frontage-sim there") from error
        client.subscribe_topic(topic, on_event)
        pool = client.get_executor(pure=False, retries=RETRIES)
        yield lambda job: pool.submit(run_on_worker, job, code_hash(), topic)

# SPDX-License-Identifier: Apache-2.0
"""Sweeps on a Dask cluster of real processes: equal bytes, lost workers, a lost client, failing runs and other code on a worker."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

import frontage_sim
from frontage_sim import sweep
from frontage_sim.cluster import FOLDER
from frontage_sim.jobs import SimulationError, VersionError
from test_runs import digest

SCENARIO = """\
title: eight runs of about half a second
seeds: 2
topology: {kind: testbed, clients: 2, servers: 3, rate: 1gbit}
transport: {min_rto: 5ms, initial_rto: 20ms}
workload: {load: 0.6, duration: 1s}
vary:
  scheduler.kind: [fifo, aifo, sp-pifo, pifo]
"""
SEED = 5
KILLS = 3
"""The scheduler gives a run up when the fourth of its workers has died."""
TIMEOUT = 120
"""Seconds after which a test fails."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as running:
        yield running


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("scenario") / "eight.yaml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Return a scenario whose runs take little time."""
    file = tmp_path / "short.yaml"
    file.write_text(SCENARIO.replace("duration: 1s", "duration: 20ms"))
    return file


@pytest.fixture(scope="module")
def undisturbed(scenario: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the hashes of all results of one local worker."""
    out = tmp_path_factory.mktemp("undisturbed")
    sweep(scenario, out, workers=1).table()
    return digest(out)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.02)


def finished(out: Path) -> int:
    """Return the number of runs whose results are stored."""
    return len(list(out.glob("*seed=?/inputs.sha256")))


def test_cluster_gives_the_bytes_of_one_local_worker(
    cluster: LocalCluster, scenario: Path, tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    results = sweep(scenario, tmp_path, cluster=cluster.scheduler_address)
    results.table()
    assert digest(tmp_path) == undisturbed
    assert len(results.core_seconds()) == 8
    assert all(seconds > 0 for seconds in results.core_seconds().values())


def test_runs_of_killed_workers_run_elsewhere(
    cluster: LocalCluster, scenario: Path, tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    rng = random.Random(SEED)
    with Client(cluster.scheduler_address, set_as_default=False) as observer, ThreadPoolExecutor(1) as pool:
        sweeping = pool.submit(sweep, scenario, tmp_path, cluster=cluster.scheduler_address)
        killed: set[int] = set()
        while len(killed) < KILLS:
            assert not sweeping.done(), "the sweep finished before all kills"
            processes = {nanny.worker_address: nanny.pid for nanny in cluster.workers.values()}
            busy = sorted(address for address, keys in observer.processing().items() if keys and processes.get(address))
            pids = [pid for address in busy if (pid := processes[address]) not in killed]
            if pids:
                pid = rng.choice(pids)
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        sweeping.result(TIMEOUT).table()
    assert digest(tmp_path) == undisturbed


@pytest.mark.parametrize("on_cluster", [False, True], ids=["local", "cluster"])
def test_sweep_resumes_after_its_process_is_killed(
    cluster: LocalCluster, scenario: Path, tmp_path: Path, undisturbed: dict[str, str], on_cluster: bool
) -> None:
    where = ["--cluster", cluster.scheduler_address] if on_cluster else ["--workers", "1"]
    command = [sys.executable, "-m", "frontage_sim", "sweep", scenario, "--out", tmp_path, *where]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: finished(tmp_path) > 0)
        process.kill()
    assert not (tmp_path / "flows.parquet").exists()
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*seed=?/timing.json")}
    sweep(scenario, tmp_path, cluster=cluster.scheduler_address if on_cluster else None).table()
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert digest(tmp_path) == undisturbed


def test_failure_of_the_simulator_is_reported_after_other_runs_have_finished(
    cluster: LocalCluster, short: Path, tmp_path: Path
) -> None:
    with short.open("a") as file:
        file.write("  record: [1ms, 0ms]\n")
    out = tmp_path / "out"
    with pytest.raises(SimulationError) as failed:
        sweep(short, out, cluster=cluster.scheduler_address)
    assert str(failed.value).startswith("8 of 16 runs failed:\n")
    reasons = re.findall(
        r"^(\S+=0ms,seed=\d): [^:]+: -: invalid scenario\s+Caused by:\s+record.queues:", str(failed.value), re.MULTILINE
    )
    assert len(set(reasons)) == 8
    assert finished(out) == 8


def test_scheduler_that_does_not_answer_is_reported(short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontage_sim.cluster.CONNECT_TIMEOUT", "1s")
    with pytest.raises(SimulationError, match=r"tcp://127.0.0.1:9: .*dask scheduler"):
        sweep(short, tmp_path, cluster="tcp://127.0.0.1:9")


def test_invalid_address_is_rejected(short: Path, tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match='invalid address "localhost": use tcp://HOST:PORT'):
        sweep(short, tmp_path, cluster="localhost")


@contextmanager
def worker(address: str, folder: Path, **environment: str) -> Iterator[None]:
    """Run a worker with these environment variables."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard", "--nthreads=1"]
    running = subprocess.Popen([*command, "--local-directory", folder], env=os.environ | environment, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def scheduler() -> Iterator[LocalCluster]:
    """Run a cluster without workers."""
    with LocalCluster(n_workers=0, dashboard_address=":0") as running:
        yield running


def test_worker_with_other_code_is_rejected(scheduler: LocalCluster, short: Path, tmp_path: Path) -> None:
    shutil.copytree(Path(frontage_sim.__file__).parent, tmp_path / "other" / "frontage_sim")
    with (tmp_path / "other" / "frontage_sim" / "resolve.py").open("a") as file:
        file.write("# changed\n")
    path = f"{tmp_path / 'other'}:{os.environ.get('PYTHONPATH', '')}"
    rejected = pytest.raises(VersionError, match=r"worker tcp://\S+ has another version of frontage-sim")
    with worker(scheduler.scheduler_address, tmp_path, PYTHONPATH=path), rejected:
        sweep(short, tmp_path / "out", cluster=scheduler.scheduler_address)


def test_damaged_simulator_on_a_worker_is_rejected(scheduler: LocalCluster, short: Path, tmp_path: Path) -> None:
    with worker(scheduler.scheduler_address, tmp_path / "worker"):
        sweep(short, tmp_path / "first", cluster=scheduler.scheduler_address)
        for file in tmp_path.glob(f"worker/**/{FOLDER}/*"):
            with file.open("ab") as opened:
                opened.write(b"x")
        with pytest.raises(SimulationError, match=r"8 of 8 runs failed:\n\S+: .*has other bytes"):
            sweep(short, tmp_path / "second", cluster=scheduler.scheduler_address)

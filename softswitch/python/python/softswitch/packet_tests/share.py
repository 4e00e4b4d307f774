# SPDX-License-Identifier: Apache-2.0
"""One of the switches that share the tests, in a network namespace of its own."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .children import die_with_parent, stop
from .errors import RunError
from .network import enter_namespace, test_link
from .results import Record, append
from .suite import Suite
from .target import end_of_log

RESULTS = "results.jsonl"
_QUEUE_LENGTH = 20000
"""Packets that PTF keeps for a test. Its default, 100, loses packets of tests that send many."""


def start_share(suite: Suite, number: int, folder: Path) -> tuple[int, int]:
    """Run share `number` (from 0) in a child process. Return its process id and a file descriptor of its output."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    output, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            die_with_parent()
            os.close(output)
            os.dup2(write, 1)
            os.dup2(write, 2)
            status = _run(suite, number, folder)
        except RunError as error:
            print(error)
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(write)
    return pid, output


def _run(suite: Suite, number: int, folder: Path) -> int:
    """Return 0, or 1 if a test failed or the switch ended."""
    log = folder / "switch.log"
    enter_namespace(suite.ports)
    json = suite.artifacts.json if suite.artifacts is not None and suite.load else None
    switch = suite.target.start(suite.ports, json, log)
    tests = subprocess.Popen(_command(suite, number, folder), env=_environment(), preexec_fn=die_with_parent)
    try:
        while tests.poll() is None and switch.poll() is None:
            time.sleep(0.05)
        if switch.poll() is None:
            return 1 if tests.returncode else 0
    finally:
        stop(tests)
        stop(switch)
    error = f"{suite.target.name}: ended with status {switch.returncode} during the tests: end of {log}:\n{end_of_log(log)}"
    append(folder / RESULTS, Record("failed", f"{suite.target.name}.Switch{number + 1}", detail=error))
    print(error)
    return 1


def _command(suite: Suite, number: int, folder: Path) -> list[str]:
    command = [sys.executable, "-m", f"{__package__}.launch", str(folder / RESULTS)]
    command += ["--test-dir", str(suite.tests), "--platform", "eth", "--log-file", str(folder / "ptf.log")]
    command += ["--qlen", str(_QUEUE_LENGTH), "--num-shards", str(suite.jobs), "--shard-id", str(number)]
    command += [word for port in suite.ports for word in ("--interface", f"{port}@{test_link(port)}")]
    command += ["--test-params", ";".join(f"{name}={value!r}" for name, value in suite.test_parameters().items())]
    return [*command, *suite.ptf_options, *suite.specs()]


def _environment() -> dict[str, str]:
    # No caches among the tests, which root would own.
    return os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore::DeprecationWarning"}

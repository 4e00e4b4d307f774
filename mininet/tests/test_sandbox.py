# SPDX-License-Identifier: Apache-2.0
"""The sandbox leaves nothing behind, whatever ends it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbeds import needs_root

pytestmark = needs_root

END_TIMEOUT = 120.0
"""Seconds for a sandbox to end, also on a busy machine."""
PROGRAM = """
import subprocess, sys, time
from pathlib import Path
from frontage_testbed import sandbox

def body(box):
    subprocess.run(["ip", "link", "add", "sandbox-test", "type", "veth", "peer", "name", "sandbox-peer"], check=True)
    (box.scratch / "file").write_text("x")
    subprocess.Popen(["setsid", "sleep", "4242.{marker}"])
    print("up", flush=True)
    {then}

sys.exit(sandbox.run(body, Path({directory!r})))
"""


def start(directory: Path, then: str) -> subprocess.Popen[str]:
    marker = os.getpid()
    program = PROGRAM.format(marker=marker, then=then, directory=str(directory))
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def left_behind(directory: Path) -> list[str]:
    """Return the remains of a sandbox: processes, interfaces, mounts and files."""
    remains = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"4242.{os.getpid()}" in command and "sleep" in command.split(" ")[0]:
            remains.append(f"process {process.name}: {command}")
    if "sandbox-test" in subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout:
        remains.append("interface")
    remains += [line for line in Path("/proc/mounts").read_text().splitlines() if str(directory) in line]
    remains += [str(p) for p in (directory / "run").glob("*")]
    return remains


def wait_until_clean(directory: Path) -> None:
    deadline = time.monotonic() + 10
    while left := left_behind(directory):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def wait_until_up(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n", process.communicate()[1]


@pytest.mark.parametrize(
    ("then", "status"),
    [
        ("return 0", 0),
        ("return 7", 7),
        ("raise RuntimeError('crash')", 1),
        ("import os; os.kill(os.getpid(), 9); import ctypes; ctypes.string_at(0)", 128 + signal.SIGSEGV),
    ],
)
def test_exit_status_is_returned_and_nothing_remains(tmp_path: Path, then: str, status: int) -> None:
    with start(tmp_path, then) as process:
        wait_until_up(process)
        assert process.wait(END_TIMEOUT) == status
    wait_until_clean(tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_signals_end_the_whole_sandbox(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path, "time.sleep(600)") as process:
        wait_until_up(process)
        process.send_signal(number)
        assert process.wait(END_TIMEOUT) == (-9 if number == signal.SIGKILL else 130)
    wait_until_clean(tmp_path)


def test_killed_run_does_not_block_the_next(tmp_path: Path) -> None:
    with start(tmp_path, "time.sleep(600)") as process:
        wait_until_up(process)
        process.kill()
    with start(tmp_path, "return 0") as process:
        wait_until_up(process)
        assert process.wait(END_TIMEOUT) == 0


def test_second_run_in_the_same_directory_is_rejected(tmp_path: Path) -> None:
    with start(tmp_path, "time.sleep(600)") as first:
        wait_until_up(first)
        with start(tmp_path, "return 0") as second:
            _, errors = second.communicate(timeout=END_TIMEOUT)
            assert f"{tmp_path}: in use by another run (process {first.pid})" in errors
        first.terminate()


def test_runs_in_different_directories_are_isolated(tmp_path: Path) -> None:
    # Both create interfaces with the same names.
    with start(tmp_path / "a", "time.sleep(600)") as first, start(tmp_path / "b", "return 0") as second:
        wait_until_up(first)
        wait_until_up(second)
        assert second.wait(END_TIMEOUT) == 0
        first.terminate()

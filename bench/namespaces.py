# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, and what runs in them."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PATIENCE = 20.0


def run(command: str, text: str = "") -> None:
    """Runs a command to its end; raises RuntimeError with what it said if it fails."""
    done = subprocess.run(command.split(), input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")


@contextlib.contextmanager
def namespace() -> Iterator[int]:
    """A network namespace with a /sys of its own, until the end: a process that is in it."""
    inside = ["unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs none /sys && echo ready && exec sleep infinity"]
    with subprocess.Popen(inside, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("no network namespace")
            yield process.pid
        finally:
            process.kill()


def enter(inside: int) -> list[str]:
    """What to put before a command that is to run where process `inside` is."""
    return ["nsenter", f"--net=/proc/{inside}/ns/net", f"--mount=/proc/{inside}/ns/mnt"]


def pin(core: int) -> list[str]:
    """What to put before a command that is to have this core alone."""
    return ["taskset", "--cpu-list", str(core)]


@contextlib.contextmanager
def serving(log: Path, command: Sequence[str | Path], port: int, where: Sequence[str] = ()) -> Iterator[int]:
    """Runs a server `where` that is, until the end: its process. It is there once it listens at `port`, TCP or UDP."""
    whole = [*where, *map(str, command)]
    with log.open("w+b") as said, subprocess.Popen(whole, stdout=said, stderr=said) as running:
        try:
            deadline = time.monotonic() + PATIENCE
            while not _listens(port, where):
                if running.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{log.stem} did not start: {' '.join(whole)}\n{log.read_text(errors='replace')}")
                time.sleep(0.02)
            yield running.pid
        finally:
            running.terminate()


def core_ns(pid: int) -> int:
    """The core time of a process so far, its kernel's for it included."""
    # The clock of a process is its number in the bits of a clock's (clock_getcpuclockid(3)).
    return time.clock_gettime_ns((~pid << 3) | 2)


def child(parent: int, name: str) -> int:
    """The child of a process in whose command line this is."""
    found = subprocess.run(["pgrep", "--parent", str(parent), "--full", name], capture_output=True, text=True, check=True)
    return int(found.stdout)


def _listens(port: int, where: Sequence[str]) -> bool:
    found = subprocess.run([*where, "ss", "-Hltun", "sport", "=", f":{port}"], capture_output=True, text=True, check=True)
    return bool(found.stdout)

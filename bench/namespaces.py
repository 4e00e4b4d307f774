# SPDX-License-Identifier: Apache-2.0
"""Network namespaces and processes in them."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PROCESS_TIMEOUT = 20.0
"""Seconds within which processes must start or end."""


def run(command: str, text: str = "") -> None:
    """Run a command; raise RuntimeError with its standard error if it fails."""
    done = subprocess.run(command.split(), input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")


@contextlib.contextmanager
def namespace() -> Iterator[int]:
    """Create a network namespace with its own /sys until the context ends; yield the id of a process in it."""
    command = ["unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs none /sys && echo ready && exec sleep infinity"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("cannot create a network namespace")
            yield process.pid
        finally:
            process.kill()


def enter(pid: int) -> list[str]:
    """Return the prefix of a command that runs it in the namespaces of a process."""
    return ["nsenter", f"--net=/proc/{pid}/ns/net", f"--mount=/proc/{pid}/ns/mnt"]


def pin(core: int) -> list[str]:
    """Return the prefix of a command that runs it on one core."""
    return ["taskset", "--cpu-list", str(core)]


@contextlib.contextmanager
def serving(log: Path, command: Sequence[str | Path], port: int, prefix: Sequence[str] = ()) -> Iterator[int]:
    """Run a server until the context ends; yield its process id once it listens on TCP or UDP `port`.

    The prefix is that of `enter`.
    """
    full_command = [*prefix, *map(str, command)]
    with log.open("w+b") as output, subprocess.Popen(full_command, stdout=output, stderr=output) as server:
        try:
            deadline = time.monotonic() + PROCESS_TIMEOUT
            while not _listens(port, prefix):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{log.stem} did not start: {' '.join(full_command)}\n{log.read_text(errors='replace')}")
                time.sleep(0.02)
            yield server.pid
        finally:
            server.terminate()


def core_ns(pid: int) -> int:
    """Return the core time of a process so far in nanoseconds, including the kernel's."""
    # The id of a process's CPU clock is derived from its process id, as in clock_getcpuclockid(3).
    return time.clock_gettime_ns((~pid << 3) | 2)


def child(parent: int, name: str) -> int:
    """Return the id of the child process whose command line contains `name`."""
    result = subprocess.run(["pgrep", "--parent", str(parent), "--full", name], capture_output=True, text=True, check=True)
    return int(result.stdout)


def _listens(port: int, prefix: Sequence[str]) -> bool:
    sockets = subprocess.run([*prefix, "ss", "-Hltun", "sport", "=", f":{port}"], capture_output=True, text=True, check=True)
    return bool(sockets.stdout)

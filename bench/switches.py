# SPDX-License-Identifier: Apache-2.0
"""The switches that are compared, as processes: softswitch, and BMv2's simple_switch_grpc where it is found."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paths import program
from sites import CPU_PORT

DEVICE_ID = 1


@dataclass(frozen=True)
class Running:
    address: str
    """Of its P4Runtime server."""
    pid: int

    def user_seconds(self) -> float:
        """Core time that its threads have spent in its own code so far, the kernel's left out."""
        # The program's name, in parentheses, may hold anything; utime is the fourteenth field (proc_pid_stat(5)).
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Switch:
    name: str
    binary: Path

    @contextlib.contextmanager
    def running(self, interfaces: Sequence[str] = ()) -> Iterator[Running]:
        """Started with interfaces ``PORT@NAME`` and without a program."""
        with tempfile.TemporaryDirectory(prefix="frontage-bench-") as folder:
            path, log = Path(folder) / "p4runtime.sock", Path(folder) / "log"
            ports = [word for interface in interfaces for word in ("-i", interface)]
            server = ["--grpc-server-addr", f"unix:{path}", "--cpu-port", str(CPU_PORT)]
            command = [str(self.binary), "--no-p4", "--device-id", str(DEVICE_ID), *ports, "--", *server]
            with log.open("wb") as output:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder)
            try:
                deadline = time.monotonic() + 20
                while not _answers(path):
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"{self.name} did not start: {' '.join(command)}\n{log.read_text(errors='replace')}")
                    time.sleep(0.02)
                yield Running(f"unix:{path}", process.pid)
            finally:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def softswitch() -> Switch:
    return Switch("softswitch", program("SOFTSWITCH", "softswitch"))


def bmv2() -> Switch | None:
    """The peer, named with what its build says of its speed."""
    found = shutil.which(os.environ.get("BMV2") or "simple_switch_grpc")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    image = Path(found).read_bytes()
    # Both are in the program's own code, which BMv2's build links statically.
    checks = "with assertions" if b"__assert_fail" in image else "built with NDEBUG"
    logging = "with logging macros" if b"Applying table" in image else "without logging macros"
    return Switch(f"BMv2 simple_switch_grpc {version}, {checks}, {logging}", Path(found).resolve())

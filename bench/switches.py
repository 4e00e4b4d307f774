# SPDX-License-Identifier: Apache-2.0
"""Processes of the compared switches: softswitch, and BMv2's simple_switch_grpc if it is installed."""

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
START_TIMEOUT = 20.0
"""Seconds."""


@dataclass(frozen=True)
class Running:
    address: str
    """Address of the P4Runtime server."""
    pid: int


@dataclass(frozen=True)
class Switch:
    name: str
    binary: Path
    options: tuple[str, ...] = ()
    """Options that only this switch has."""

    @contextlib.contextmanager
    def running(self, interfaces: Sequence[str] = ()) -> Iterator[Running]:
        """Run the switch with interfaces ``PORT@NAME``, without a program, until the context ends."""
        with tempfile.TemporaryDirectory(prefix="frontage-bench-") as folder:
            path, log = Path(folder) / "p4runtime.sock", Path(folder) / "log"
            ports = [word for interface in interfaces for word in ("-i", interface)]
            server = ["--grpc-server-addr", f"unix:{path}", "--cpu-port", str(CPU_PORT)]
            command = [str(self.binary), "--no-p4", "--device-id", str(DEVICE_ID), *self.options, *ports, "--", *server]
            with log.open("wb") as output:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder)
            try:
                deadline = time.monotonic() + START_TIMEOUT
                while not _accepts(path):
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


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def softswitch(*options: str) -> Switch:
    return Switch(" ".join(("softswitch", *options)), program("SOFTSWITCH", "softswitch"), options)


def bmv2() -> Switch | None:
    """Return BMv2 with the build options that affect its speed in its name, or None if it is not installed."""
    path = shutil.which(os.environ.get("BMV2") or "simple_switch_grpc")
    if path is None:
        return None
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    image = Path(path).read_bytes()
    # BMv2 is linked statically, so both strings are in its binary.
    checks = "with assertions" if b"__assert_fail" in image else "built with NDEBUG"
    logging = "with logging macros" if b"Applying table" in image else "without logging macros"
    return Switch(f"BMv2 simple_switch_grpc {version}, {checks}, {logging}", Path(path).resolve())

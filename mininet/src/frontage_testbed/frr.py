# SPDX-License-Identifier: Apache-2.0
"""FRR on a host of a testbed: zebra, bgpd and bfdd, with their sockets in a directory of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .nodes import Namespace, NodeError
from .processes import end

PROGRAMS = Path("/usr/lib/frr")
USER = "frr"
DAEMONS = ("zebra", "bgpd", "bfdd")
"""In the order of their start: the others connect to zebra."""
START_TIMEOUT = 20.0
COMMAND_TIMEOUT = 15.0
KEEP_ROUTES = 120
"""Seconds for which zebra keeps the routes of a daemon that restarts."""
NICE = -5
"""The priority that Debian's frr.service gives to the daemons, without which BFD ends sessions on a busy machine."""


class Frr:
    """The daemons of one host."""

    def __init__(self, host: Namespace, logs: Path, *, bmp: bool = False, bfd: bool = True) -> None:
        """`logs` is the directory of the log files. `bmp` loads the module by which bgpd reports its routes.

        Without `bfd`, bfdd does not run.
        """
        # The user frr cannot enter a test's directory, and paths of sockets must be short.
        self.directory = Path(tempfile.mkdtemp(prefix=f"frr-{host.name}-", dir="/tmp"))
        self._logs = logs
        self._host = host
        self._bmp = bmp
        self._daemons = DAEMONS if bfd else tuple(name for name in DAEMONS if name != "bfdd")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def vtysh(self) -> list[str]:
        """The command of the shell, which works in any network namespace."""
        return ["vtysh", "--vty_socket", str(self.directory)]

    def start(self, configuration: str = "") -> None:
        """Start the daemons, and configure them."""
        self._logs.mkdir()
        shutil.chown(self.directory, USER, USER)
        for name in self._daemons:
            self.start_daemon(name)
        if configuration:
            self.configure(configuration)

    def start_daemon(self, name: str) -> None:
        """Start one daemon, without configuration."""
        file = self.directory / f"{name}.conf"
        file.touch()
        shutil.chown(file, USER, USER)
        command: list[str | Path] = [PROGRAMS / name, "-f", file, "-i", self.directory / f"{name}.pid"]
        command += ["-z", self.directory / "zserv.api", "--vty_socket", self.directory, "--log", "stdout"]
        if name == "zebra":
            command += ["-K", str(KEEP_ROUTES)]
        elif name == "bfdd":
            command += ["--bfdctl", self.directory / "bfdd.sock"]
        elif self._bmp:
            command += ["-M", "bmp"]
        with (self._logs / f"{name}.log").open("ab") as log:
            self._processes[name] = self._host.spawn(command, stdout=log, stderr=log)
        os.setpriority(os.PRIO_PROCESS, self._processes[name].pid, NICE)
        _wait(f"{name} of {self._host.name}", (self.directory / f"{name}.vty").exists)

    def kill_daemon(self, name: str) -> None:
        """Kill one daemon, as if it crashed."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()
        (self.directory / f"{name}.vty").unlink()

    def thaw(self) -> None:
        """Let frozen daemons continue."""
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)

    def freeze(self) -> None:
        """Stop the daemons without ending their connections, as if the host hung."""
        for process in self._processes.values():
            process.send_signal(signal.SIGSTOP)

    def show(self, command: str) -> Mapping[str, Any]:
        """Return the result of a command that prints JSON."""
        found: Mapping[str, Any] = json.loads(self._run(["-c", f"{command} json"]))
        return found

    def configure(self, configuration: str) -> None:
        """Run lines of configuration."""
        self._run(["-f", "/dev/stdin"], configuration)

    def _run(self, arguments: list[str], text: str = "") -> str:
        command = [*self.vtysh, *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=COMMAND_TIMEOUT)
        if done.returncode != 0:
            raise NodeError(f"{self._host.name}: vtysh {arguments[-1]}: {(done.stdout + done.stderr).strip()}")
        return done.stdout

    def stop(self) -> None:
        """Stop the daemons."""
        self.thaw()
        for process in reversed(self._processes.values()):
            end(process)
        shutil.rmtree(self.directory)


def is_installed() -> bool:
    """Return whether FRR is installed."""
    return (PROGRAMS / "bgpd").exists() and shutil.which("vtysh") is not None


def _wait(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise NodeError(f"{what} did not start within {START_TIMEOUT:g} s")
        time.sleep(0.02)

# SPDX-License-Identifier: Apache-2.0
"""Wires between the hosts of a small testbed.

A wire is two ports of one softswitch, whose links have the wire's delay, rate and loss.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .nodes import run_script, spawn

WIRES = "wires"
PROGRAM = Path(__file__).with_name("data") / "wire.p4"
GRPC = "127.0.0.1:9559"


def interface(port: int) -> str:
    """Return the name of the interface of a port."""
    return f"{WIRES}-{port}"


class Wires:
    """The wires of a testbed; `folder` holds the compiled program and the log."""

    def __init__(self, switch: Path, compiler: Path, folder: Path) -> None:
        self._switch, self._folder, self._program = switch, folder, folder / "wire.json"
        run_script(WIRES, [f"{compiler} -o {self._program} {PROGRAM}"])

    def start(self, ports: Sequence[int], links: Mapping[int, str], seed: int) -> subprocess.Popen[bytes]:
        """Start the switch. `links` maps ports to softswitch's link options; `seed` is for losses."""
        command: list[str | Path] = [self._switch, self._program, "--seed", str(seed)]
        for port in ports:
            command += ["-i", f"{port}@{interface(port)}"]
        for port, link in links.items():
            command += ["--link", f"{port}:{link}"]
        with (self._folder / f"{WIRES}.log").open("wb") as log:
            return spawn([*command, "--", "--grpc-server-addr", GRPC], log)

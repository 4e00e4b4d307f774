# SPDX-License-Identifier: Apache-2.0
"""The means of a running row: the copy of its exercise, commands, mininet, and files that programs write."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from console import Console
from outputs import last_line, loss
from rows import RowError


@dataclass
class Stage:
    folder: Path
    """The working folder: the exercise's, in a copy of the checkout."""
    log: BinaryIO
    """Receives the output of all commands."""

    def install(self, source: str, target: str = ".") -> None:
        """Copy files of the exercise (a pattern, such as "solution/*.p4") into its folder or over a file."""
        found = sorted(self.folder.glob(source))
        if not found:
            raise RowError(f"the checkout has no {source}")
        for path in found:
            shutil.copy(path, self.folder / target)

    def run(self, *command: str, timeout: float = 120) -> str:
        """Run a command in the exercise's folder; return its output, also if it fails or is stopped after `timeout` seconds."""
        self.log.write(f"$ {' '.join(command)}\n".encode())
        process = subprocess.Popen(
            command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            output = process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0] + f"\nstopped after {timeout:.0f} s\n".encode()
        self.log.write(output)
        self.log.flush()
        return output.decode(errors="replace")

    @contextmanager
    def background(self, *command: str, output: str) -> Iterator[None]:
        """Run a program beside the others; its output goes to this file, without delay."""
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        with (self.folder / output).open("wb") as file:
            program = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment
            )
        try:
            yield
        finally:
            program.kill()
            program.wait()
            self.log.write(f"$ {' '.join(command)}\n".encode() + (self.folder / output).read_bytes())

    @contextmanager
    def mininet(self, *command: str) -> Iterator[Net]:
        """Start the network by a command that ends in mininet's command line, such as the target `run` of the Makefile."""
        with Console(command, self.folder, self.log) as console:
            yield Net(self, console)

    def read(self, name: str) -> str:
        """Return the text of a file in the exercise's folder; empty if it does not exist."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def wait(
        self, condition: Callable[[], bool], what: str, timeout: float = 30, again: Callable[[], object] | None = None
    ) -> None:
        """Wait until the condition holds, calling `again` before each look.

        Raises RowError with `what` after `timeout` seconds.
        """
        end = time.monotonic() + timeout
        while True:
            if again is not None:
                again()
            if condition():
                return
            if time.monotonic() > end:
                raise RowError(f"{what} (waited {timeout:.0f} s)")
            time.sleep(0.5)


@dataclass
class Net:
    """A running mininet."""

    stage: Stage
    console: Console

    def run(self, host: str, command: str, timeout: float = 60) -> str:
        """Run a command on a host; return its output."""
        return self.console.run(f"{host} {command}", timeout)

    def start(self, host: str, command: str, output: str) -> None:
        """Start a command on a host; its output goes to this file, without delay."""
        self.console.run(f"{host} PYTHONUNBUFFERED=1 {command} > {output} 2>&1 &")

    def receive(self, host: str, command: str = "./receive.py", output: str = "") -> str:
        """Start the exercise's receiver, and return the name of its output once it listens."""
        output = output or f"{host}.txt"
        self.start(host, command, output)
        self.stage.wait(lambda: "sniffing on" in self.stage.read(output), f"the receiver on {host} does not start")
        time.sleep(1)  # It prints the line before it opens the socket.
        return output

    def exchange(
        self, host: str, command: str, output: str, condition: Callable[[str], bool], what: str, timeout: float = 60
    ) -> None:
        """Run a sender again and again until the receiver's output satisfies the condition."""
        self.stage.wait(lambda: condition(self.stage.read(output)), what, timeout, lambda: self.run(host, command))

    def pingall(self) -> None:
        """Ping each host from each other host. Raises RowError if a packet is lost."""
        output = self.console.run("pingall", 180)
        if loss(output):
            raise RowError(f"pingall: {last_line(output)}")

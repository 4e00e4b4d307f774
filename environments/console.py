# SPDX-License-Identifier: Apache-2.0
"""Drives a program that reads commands after a prompt, such as mininet's command line, through its standard input."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from outputs import last_line
from rows import RowError

PROMPT = "mininet> "
START_TIMEOUT = 120
"""Seconds until the first prompt: compilation, and the start of switches."""


class Console:
    """A running program.

    As a context manager, it ends the program at exit. Output is also written to `log`.
    """

    def __init__(self, command: Sequence[str], folder: Path, log: BinaryIO, prompt: str = PROMPT) -> None:
        self._prompt = prompt.encode()
        self._log = log
        self._program = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.greeting = self._until_prompt(START_TIMEOUT)
        """Output before the first prompt."""

    def run(self, command: str, timeout: float = 60) -> str:
        """Enter a command; return its output up to the next prompt.

        Raises RowError if the prompt does not come within `timeout` seconds, or if the program ends.
        """
        assert self._program.stdin is not None
        self._log.write(f"{command}\n".encode())
        try:
            self._program.stdin.write(f"{command}\n".encode())
            self._program.stdin.flush()
        except BrokenPipeError:
            raise RowError(f"the program ended before `{command}`") from None
        return self._until_prompt(timeout, command)

    def _until_prompt(self, timeout: float, command: str = "") -> str:
        assert self._program.stdout is not None
        seen, end, reader = b"", time.monotonic() + timeout, self._program.stdout.fileno()
        while not seen.endswith(self._prompt):
            left = end - time.monotonic()
            if left <= 0 or not select.select([reader], [], [], left)[0]:
                raise RowError(f"{_subject(command)} took more than {timeout:.0f} s: {last_line(_text(seen))}")
            piece = os.read(reader, 65536)
            if not piece:
                raise RowError(f"{_subject(command)} ended the program: {last_line(_text(seen))}")
            self._log.write(piece)
            self._log.flush()
            seen += piece
        return _text(seen.removesuffix(self._prompt))

    def __enter__(self) -> Console:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        assert self._program.stdin is not None
        try:
            self._program.stdin.close()
            self._program.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self._program.kill()
            self._program.wait()


def _subject(command: str) -> str:
    return f"`{command}`" if command else "the start"


def _text(output: bytes) -> str:
    return output.decode(errors="replace")

# SPDX-License-Identifier: Apache-2.0
"""Driving a program by its prompt."""

import io
import sys
from pathlib import Path

import pytest

from console import Console
from rows import RowError

PROGRAM = """
import sys, time
print("Welcome")
while True:
    line = input("mininet> ")
    if line == "sleep":
        time.sleep(60)
    if line == "die":
        sys.exit("no such host")
    print("you said", line)
"""


@pytest.fixture
def log() -> io.BytesIO:
    return io.BytesIO()


def console(tmp_path: Path, log: io.BytesIO) -> Console:
    return Console([sys.executable, "-c", PROGRAM], tmp_path, log)


def test_output_of_each_command_ends_at_next_prompt(tmp_path: Path, log: io.BytesIO) -> None:
    with console(tmp_path, log) as program:
        assert program.greeting == "Welcome\n"
        assert program.run("one") == "you said one\n"
        assert program.run("two") == "you said two\n"
    assert b"you said two" in log.getvalue()


def test_command_that_takes_too_long_fails(tmp_path: Path, log: io.BytesIO) -> None:
    with console(tmp_path, log) as program, pytest.raises(RowError, match="`sleep` took more than 1 s"):
        program.run("sleep", timeout=1)
    # Leaving the context ends the program.


def test_program_that_ends_is_reported_with_its_last_line(tmp_path: Path, log: io.BytesIO) -> None:
    with console(tmp_path, log) as program, pytest.raises(RowError, match="`die` ended the program: no such host"):
        program.run("die")


def test_program_without_prompt_does_not_start(tmp_path: Path, log: io.BytesIO) -> None:
    with pytest.raises(RowError, match="the start ended the program: no rule"):
        Console([sys.executable, "-c", "print('no rule')"], tmp_path, log)

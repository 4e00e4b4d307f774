"""The programs that are compared: the project's own, and p4c and BMv2 where they are found."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from corpus import Sample

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 120
"""Seconds that one program may take: many times what the slowest does."""


class ToolError(Exception):
    """Which program is missing, and how to get it."""


def own(variable: str, name: str) -> Path:
    """One of the project's own programs: the one that this variable of the environment names, or the one of `make setup`."""
    path = Path(os.environ.get(variable) or ROOT / "target" / "release" / name).resolve()
    if not path.is_file():
        raise ToolError(f"{path} is missing: `make setup` builds it, or set {variable} to where it is")
    return path


def peer(variable: str, *names: str) -> Path | None:
    """Another project's program, which may be absent: the one that this variable names, or the first of these on PATH."""
    given = os.environ.get(variable)
    if given and shutil.which(given) is None:
        raise ToolError(f"{variable}={given} is no program; correct or unset it")
    found = next((path for name in ([given] if given else names) if (path := shutil.which(name))), None)
    return Path(found).resolve() if found else None


@dataclass(frozen=True)
class Done:
    status: int
    text: str
    """Standard output, then standard error."""

    @property
    def first(self) -> str:
        """The first line with an error, or else the first that says something: a report has room for one."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()] or [f"status {self.status}, without a word"]
        return next((line for line in lines if "error" in line), lines[0])


def run(*command: str | Path, folder: Path | None = None) -> Done:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return Done(-1, f"did not end within {TIMEOUT} s")
    return Done(done.returncode, done.stdout + done.stderr)


@dataclass(frozen=True)
class Compiler:
    """A P4 compiler with the command line that softswitch-p4c and p4c-bm2-ss share."""

    name: str
    binary: Path
    include: Path | None = None
    """Where the files are that programs for other architectures include, and for p4c all of them."""

    def compile(self, sample: Sample, into: Path) -> tuple[Done, Path, Path]:
        """What the compiler said, and where JSON and P4Info are if it wrote them."""
        return _compile(self.binary, self.include, sample, into)


@cache
def _compile(binary: Path, include: Path | None, sample: Sample, into: Path) -> tuple[Done, Path, Path]:
    stem = f"{sample.source.parent.name}__{sample.source.stem}"
    json, p4info = into / f"{stem}.json", into / f"{stem}.p4info.txtpb"
    including = ["-I", str(include)] if include else []
    command: list[str | Path] = [binary, *including, "-o", json, "--p4runtime-files", p4info, sample.source.name]
    # In the program's own folder, so that messages have its bare name.
    return run(*command, folder=sample.source.parent), json, p4info


def version(binary: Path) -> str:
    """The number in what a program says of itself."""
    words = run(binary, "--version").text.split()
    return next((word for word in words if word[:1].isdigit()), "of unknown version")

# SPDX-License-Identifier: Apache-2.0
"""The programs under comparison: the project's own, and p4c and BMv2 if they are installed."""

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
"""Timeout of one program in seconds: many times the duration of the slowest."""


class ToolError(Exception):
    """A missing program, and how to get it."""


def own(variable: str, name: str) -> Path:
    """Return the path of one of the project's programs, from this environment variable or from `make setup`."""
    path = Path(os.environ.get(variable) or ROOT / "target" / "release" / name).resolve()
    if not path.is_file():
        raise ToolError(f"missing {path}: build it with `make setup`, or set {variable} to its path")
    return path


def peer(variable: str, *names: str) -> Path | None:
    """Return the path of another project's program, from this environment variable or from PATH; None if it is missing."""
    given = os.environ.get(variable)
    if given and shutil.which(given) is None:
        raise ToolError(f"{variable}={given}: not a program: correct or unset it")
    found = next((path for name in ([given] if given else names) if (path := shutil.which(name))), None)
    return Path(found).resolve() if found else None


@dataclass(frozen=True)
class Done:
    status: int
    text: str
    """Standard output, then standard error."""

    @property
    def first(self) -> str:
        """The first line with an error or, without one, the first non-empty line, for a one-line report."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()] or [f"status {self.status}, without output"]
        return next((line for line in lines if "error" in line), lines[0])


def run(*command: str | Path, folder: Path | None = None) -> Done:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return Done(-1, f"timed out after {TIMEOUT} s")
    return Done(done.returncode, done.stdout + done.stderr)


@dataclass(frozen=True)
class Compiler:
    """A P4 compiler with the command line that softswitch-p4c and p4c-bm2-ss share."""

    name: str
    binary: Path
    include: Path | None = None
    """Folder of the include files for other architectures; p4c's also has v1model.p4 and core.p4."""

    def compile(self, sample: Sample, into: Path) -> tuple[Done, Path, Path]:
        """Compile a sample; return the result and the paths of JSON and P4Info, which may not exist."""
        return _compile_once(self, sample, into)

    def compile_now(self, sample: Sample, into: Path) -> tuple[Done, Path, Path]:
        """Compile like `compile`, also if the file was compiled before."""
        stem = f"{sample.source.parent.name}__{sample.source.stem}"
        json, p4info = into / f"{stem}.json", into / f"{stem}.p4info.txtpb"
        including = ["-I", str(self.include)] if self.include else []
        command: list[str | Path] = [self.binary, *including, "-o", json, "--p4runtime-files", p4info, sample.source.name]
        # In the program's folder, so that messages contain its bare name.
        return run(*command, folder=sample.source.parent), json, p4info


@cache
def _compile_once(compiler: Compiler, sample: Sample, into: Path) -> tuple[Done, Path, Path]:
    return compiler.compile_now(sample, into)


def own_compiler(include: Path | None = None) -> Compiler:
    """Return softswitch-p4c. Raises ToolError."""
    return Compiler("softswitch-p4c", own("SOFTSWITCH_P4C", "softswitch-p4c"), include)


def version(binary: Path) -> str:
    """Return a program's version number."""
    words = run(binary, "--version").text.split()
    return next((word for word in words if word[:1].isdigit()), "of unknown version")

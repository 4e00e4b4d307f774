# SPDX-License-Identifier: Apache-2.0
"""Jobs: the independent parts of a sweep, which give the same results on any machine with the same code."""

from __future__ import annotations

import hashlib
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

TIMING = "timing.json"
"""Result file with the CPU time of a job in ``core_seconds``; the only one that differs between two executions."""

PACKAGES = ("frontage", "frontage_records", "frontage_sim")
LIBRARIES = ("numpy", "polars", "scipy")


class SimulationError(RuntimeError):
    """A simulation failed, and would fail again."""


class VersionError(SimulationError):
    """Another machine has other code than the user's machine."""


@dataclass(frozen=True)
class Job(ABC):
    """A part of a sweep. It can be pickled, and refers to files by their hash, because it may run on another machine."""

    name: str
    """The name of the folder of its results, unique in the sweep."""
    digest: str
    """The hash of everything on which its results depend."""

    @abstractmethod
    def run(self, inputs: Path, report: Callable[[float], None]) -> Mapping[str, bytes]:
        """Return the contents of the result files by name, among them `TIMING`.

        The folder ``inputs`` holds the needed files, named after their SHA-256 hashes, and temporary files. ``report`` takes the completed
        share of the job. Raises SimulationError if the job would fail again, and another error if it may succeed elsewhere.
        """


def attempt(job: Job, inputs: Path, report: Callable[[float], None]) -> Mapping[str, bytes] | SimulationError:
    """Run a job. An error that would repeat is returned, because a cluster repeats a job that raises an error."""
    try:
        return job.run(inputs, report)
    except SimulationError as error:
        return error


def hash_file(file: Path) -> str:
    """Return the SHA-256 hash of a file in hexadecimal."""
    status = file.stat()
    return _hash_version(file, status.st_ino, status.st_size, status.st_mtime_ns)


@cache
def _hash_version(file: Path, *_: int) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def input_file(inputs: Path, digest: str) -> Path:
    """Return the path of an input with this hash. Raises ValueError if the file has changed, for example because it was compiled again."""
    file = inputs / digest
    if hash_file(file) != digest:
        raise ValueError(f"{file.resolve()} has other bytes than at the start of the sweep: repeat the command")
    return file


@cache
def code_hash() -> str:
    """Return a hash of the installed code on which results can depend: our packages, and the versions of libraries and Python."""
    lines = [platform.python_version(), *(f"{library} {version(library)}" for library in LIBRARIES)]
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None and spec.submodule_search_locations is not None
        folder = Path(spec.submodule_search_locations[0])
        files = sorted(file for file in folder.rglob("*") if file.suffix in {".py", ".csv"})
        lines += [f"{package} {file.relative_to(folder)} {hash_file(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()

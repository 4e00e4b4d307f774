# SPDX-License-Identifier: Apache-2.0
"""The plan of a sweep: the jobs of a scenario file, and the columns that distinguish their rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from frontage_sim.jobs import Job


@dataclass(frozen=True)
class Work:
    """Jobs with all that they need."""

    inputs: Mapping[str, Path]
    """The files that jobs need, by their SHA-256 hashes."""
    jobs: Iterable[Job]
    """The jobs, which are resolved one after the other."""


class Plan(ABC):
    """The jobs of a scenario file. Nothing is compiled or resolved before `work`."""

    title: str
    """The title of the scenario."""
    folder: str
    """The name of the folder of results."""
    table: str
    """The main table of the results."""
    labels: Mapping[str, Mapping[str, object]]
    """Columns of each job's rows that are not in its own tables, by the job's name; jobs are in the order of rows."""
    in_python: bool
    """True if jobs compute in Python, false if they wait for a program."""

    @abstractmethod
    def work(self) -> Work:
        """Return the jobs. Raises ConfigError for P4 code that does not compile, and FileNotFoundError for a missing binary."""

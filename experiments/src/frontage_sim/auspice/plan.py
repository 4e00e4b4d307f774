# SPDX-License-Identifier: Apache-2.0
"""Auspice's experiments as jobs: each topology, scheme and load is one job, which computes in Python."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from frontage_sim.auspice import run
from frontage_sim.auspice.scenario import AuspiceScenario, Load, load, split
from frontage_sim.jobs import TIMING, Job, code_hash
from frontage_sim.plan import Plan, Work


class AuspicePlan(Plan):
    """The parts of a scenario."""

    table = "rows"

    def __init__(self, file: Path, full: bool) -> None:
        scenario = load(file, full)
        self._parts = {_name(part): part for part in split(scenario)}
        self.title = scenario.title
        self.folder = f"{file.parent.name}-{file.stem}{'-full' if full else ''}"
        self.labels = {name: {} for name in self._parts}
        self.in_python = len(self._parts) > 1  # a single part needs no process of its own

    def work(self) -> Work:
        return Work({}, [AuspiceJob(name, _digest(part), part) for name, part in self._parts.items()])


@dataclass(frozen=True)
class AuspiceJob(Job):
    """A part of a scenario."""

    part: AuspiceScenario

    def run(self, inputs: Path, report: Callable[[float], None]) -> dict[str, bytes]:  # noqa: ARG002
        started = time.thread_time()
        buffer = BytesIO()
        run(self.part).rechunk().write_parquet(buffer)
        timing = json.dumps({"core_seconds": time.thread_time() - started})
        return {"rows.parquet": buffer.getvalue(), TIMING: timing.encode()}


def _name(part: AuspiceScenario) -> str:
    labels = {"scheme": part.schemes[0], "load": part.loads[0]} if isinstance(part, Load) else {}
    return ",".join(f"{label}={value}" for label, value in {**labels, "seed": part.seed}.items())


def _digest(part: AuspiceScenario) -> str:
    """Return the hash of the part's fields and of our Python code, which computes the results."""
    return hashlib.sha256((code_hash() + part.model_dump_json(exclude={"title", "full"})).encode()).hexdigest()

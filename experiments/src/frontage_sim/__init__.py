# SPDX-License-Identifier: Apache-2.0
"""Simulates data centres in which every packet passes the compiled P4 program. Input: scenarios. Output: data frames.

>>> from frontage_sim import simulate
>>> flows = simulate("experiments/cloudcookie/figure8.yaml")   # doctest: +SKIP
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from frontage_sim import scenario, wide
from frontage_sim.grid import Run, runs
from frontage_sim.overlay import build
from frontage_sim.results import Table, collect
from frontage_sim.runner import run_all
from frontage_sim.scenario import load
from frontage_sim.switches import Program
from frontage_sim.wide.scenario import is_wide
from frontage_sim.wide.scenario import load as load_wide

__all__ = ["simulate"]

REPOSITORY = Path(__file__).resolve().parents[3]
RUNS = REPOSITORY / "build" / "experiments"
"""Folder of results: one folder per scenario, which contains one per run."""


def project_file(variable: str, default: Path) -> Path:
    """Return a file of the project: the value of an environment variable, or a default below the repository."""
    path = Path(os.environ.get(variable, REPOSITORY / default)).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{path}: file not found: run `make setup`, or set {variable}")
    return path


def simulator() -> Path:
    """Return the path of the simulator [FRONTAGE_SIMULATOR]."""
    return project_file("FRONTAGE_SIMULATOR", Path("target/release/frontage-simulator"))


def compiled() -> Program:
    """Return the project's P4 program [FRONTAGE_P4INFO, FRONTAGE_P4]."""
    p4 = Path("build/p4")
    return Program(project_file("FRONTAGE_P4INFO", p4 / "frontage.p4info.txtpb"), project_file("FRONTAGE_P4", p4 / "frontage.json"))


def program(run: Run, file: Path) -> Program:
    """Return the P4 program of a run: the project's, or the scenario's modified version, compiled [FRONTAGE_P4C]."""
    wanted = run.scenario.program
    if wanted == scenario.Program():
        return compiled()
    compiler = project_file("FRONTAGE_P4C", Path("target/release/softswitch-p4c"))
    return build(wanted, file, REPOSITORY / "p4src", compiler, REPOSITORY / "build" / "p4" / "edited")


def simulate(
    file: Path | str, out: Path | None = None, *, full: bool = False, workers: int | None = None, table: Table = "flows"
) -> pl.DataFrame:
    """Run a scenario and return its flows, one per row, or another table.

    ``out`` keeps all runs (``build/experiments/NAME``). A scenario of records over a wide area has its own rows.
    Raises ConfigError for an invalid scenario, and SimulationError if a run fails."""
    file = Path(file)
    if is_wide(file):
        folder = out or RUNS / f"{file.parent.name}-{file.stem}{'-full' if full else ''}"
        return wide.simulate(load_wide(file, full), folder, workers)
    out = out or RUNS / (file.stem + ("-full" if full else ""))
    every = runs(load(file), file, full)
    run_all(every, [program(run, file) for run in every], simulator(), out, RUNS, workers)
    return collect(every, out, table)

# SPDX-License-Identifier: Apache-2.0
"""Simulates data centres in which every packet passes through the compiled P4 program. Scenarios go in, data frames come out.

>>> from frontage_sim import simulate
>>> flows = simulate("experiments/cloudcookie/figure8.yaml")   # doctest: +SKIP
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from frontage_sim import auspice, scenario
from frontage_sim.auspice.scenario import is_auspice_scenario
from frontage_sim.auspice.scenario import load as load_auspice
from frontage_sim.grid import Run, runs
from frontage_sim.overlay import build
from frontage_sim.results import Table, collect
from frontage_sim.runner import run_all
from frontage_sim.scenario import load
from frontage_sim.switches import Program

__all__ = ["simulate"]

REPOSITORY = Path(__file__).resolve().parents[3]
RUNS = REPOSITORY / "build" / "experiments"
"""Folder of results: one folder per scenario, with one subfolder per run."""


def project_file(variable: str, default: Path) -> Path:
    """Return the file that an environment variable names, or else the default, relative to the repository."""
    path = Path(os.environ.get(variable, REPOSITORY / default)).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{path}: file not found: run `make setup`, or set {variable}")
    return path


def simulator() -> Path:
    """Return the path of the simulator's binary, which FRONTAGE_SIMULATOR overrides."""
    return project_file("FRONTAGE_SIMULATOR", Path("target/release/frontage-simulator"))


def shipped_program() -> Program:
    """Return the project's compiled P4 program, which FRONTAGE_P4INFO and FRONTAGE_P4 override."""
    p4 = Path("build/p4")
    return Program(project_file("FRONTAGE_P4INFO", p4 / "frontage.p4info.txtpb"), project_file("FRONTAGE_P4", p4 / "frontage.json"))


def program(run: Run, file: Path) -> Program:
    """Return the P4 program of a run: the project's, or one that the scenario modifies. FRONTAGE_P4C overrides the compiler."""
    variant = run.scenario.program
    if variant == scenario.Program():
        return shipped_program()
    compiler = project_file("FRONTAGE_P4C", Path("target/release/softswitch-p4c"))
    return build(variant, file, REPOSITORY / "p4src", compiler, REPOSITORY / "build" / "p4" / "edited")


def simulate(
    file: Path | str, out: Path | None = None, *, full: bool = False, workers: int | None = None, table: Table = "flows"
) -> pl.DataFrame:
    """Run a scenario and return its flows, one per row, or another table. A scenario of Auspice has its own rows.

    ``out`` is the folder of the results (default: ``build/experiments/NAME``). Raises ConfigError for an invalid scenario, and
    SimulationError if a run fails.
    """
    file = Path(file)
    if is_auspice_scenario(file):
        folder = out or RUNS / f"{file.parent.name}-{file.stem}{'-full' if full else ''}"
        return auspice.simulate(load_auspice(file, full), folder, workers)
    out = out or RUNS / (file.stem + ("-full" if full else ""))
    all_runs = runs(load(file), file, full)
    run_all(all_runs, [program(run, file) for run in all_runs], simulator(), out, RUNS, workers)
    return collect(all_runs, out, table)

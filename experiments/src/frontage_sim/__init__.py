"""Simulations of data centres whose every packet passes the compiled P4 program: scenarios in, data frames out.

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
"""A folder for each scenario, with one for each run in it."""


def found(variable: str, default: Path) -> Path:
    """A file of the project: the one that this variable of the environment names, or the one of `make setup` there."""
    path = Path(os.environ.get(variable, REPOSITORY / default)).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `make setup` builds it, or set {variable} to where it is")
    return path


def simulator() -> Path:
    """The program that simulates [FRONTAGE_SIMULATOR]."""
    return found("FRONTAGE_SIMULATOR", Path("target/release/frontage-simulator"))


def compiled() -> Program:
    """The project's P4 program [FRONTAGE_P4INFO, FRONTAGE_P4]."""
    p4 = Path("build/p4")
    return Program(found("FRONTAGE_P4INFO", p4 / "frontage.p4info.txtpb"), found("FRONTAGE_P4", p4 / "frontage.json"))


def program(run: Run, file: Path) -> Program:
    """The P4 program in every switch of a run: the project's, or the one that the scenario edits, compiled [FRONTAGE_P4C]."""
    wanted = run.scenario.program
    if wanted == scenario.Program():
        return compiled()
    compiler = found("FRONTAGE_P4C", Path("target/release/softswitch-p4c"))
    return build(wanted, file, REPOSITORY / "p4src", compiler, REPOSITORY / "build" / "p4" / "edited")


def simulate(
    file: Path | str, out: Path | None = None, *, full: bool = False, workers: int | None = None, table: Table = "flows"
) -> pl.DataFrame:
    """Runs a scenario and gives its flows, a row each, or another table; ``out`` keeps every run (``build/experiments/NAME``).
    One of records over a wide area has rows of its own.

    Raises ConfigError for a bad scenario, SimulationError if a run fails."""
    file = Path(file)
    if is_wide(file):
        folder = out or RUNS / f"{file.parent.name}-{file.stem}{'-full' if full else ''}"
        return wide.simulate(load_wide(file, full), folder, workers)
    out = out or RUNS / (file.stem + ("-full" if full else ""))
    every = runs(load(file), file, full)
    run_all(every, [program(run, file) for run in every], simulator(), out, RUNS, workers)
    return collect(every, out, table)

"""Simulations of data centres whose every packet passes the compiled P4 program: scenarios in, data frames out.

>>> from frontage_sim import simulate
>>> flows = simulate("experiments/cloudcookie/figure8.yaml")   # doctest: +SKIP
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from frontage_sim.grid import runs
from frontage_sim.results import collect
from frontage_sim.runner import run_all
from frontage_sim.scenario import load
from frontage_sim.switches import Program

__all__ = ["simulate"]

REPOSITORY = Path(__file__).resolve().parents[3]


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
    """The P4 program in every switch [FRONTAGE_P4INFO, FRONTAGE_P4]."""
    p4 = Path("build/p4")
    return Program(found("FRONTAGE_P4INFO", p4 / "frontage.p4info.txtpb"), found("FRONTAGE_P4", p4 / "frontage.json"))


def simulate(file: Path | str, out: Path | None = None, *, full: bool = False, workers: int | None = None) -> pl.DataFrame:
    """Runs a scenario and gives its flows, a row each; ``out`` keeps every run (``build/experiments/NAME``).

    Raises ConfigError for a bad scenario, SimulationError if a run fails."""
    file = Path(file)
    out = out or REPOSITORY / "build" / "experiments" / (file.stem + ("-full" if full else ""))
    every = runs(load(file), file, full)
    run_all(every, compiled(), simulator(), out, workers)
    return collect(every, out)

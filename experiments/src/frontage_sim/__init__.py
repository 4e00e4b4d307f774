# SPDX-License-Identifier: Apache-2.0
"""Simulates data centres in which every packet passes through the compiled P4 program. Scenarios go in, data frames come out.

>>> from frontage_sim import sweep
>>> flows = sweep("experiments/cloudcookie/figure8.yaml").table()   # doctest: +SKIP
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from frontage_sim.auspice.plan import AuspicePlan
from frontage_sim.auspice.scenario import is_auspice_scenario
from frontage_sim.jobs import SimulationError
from frontage_sim.machines import Machines, this_machine
from frontage_sim.packets import PacketPlan
from frontage_sim.paths import RUNS
from frontage_sim.plan import Plan, Work
from frontage_sim.results import Results
from frontage_sim.sweeping import finish

__all__ = ["plan_sweep", "sweep"]


def plan_sweep(file: Path, full: bool = False) -> Plan:
    """Read a scenario file. Raises ConfigError if it is invalid."""
    return AuspicePlan(file, full) if is_auspice_scenario(file) else PacketPlan(file, full)


def sweep(
    file: Path | str, out: Path | None = None, *, full: bool = False, workers: int | None = None, cluster: str | None = None
) -> Results:
    """Run all simulations of a scenario that have not finished yet, and return the results of all.

    ``out`` is the folder of the results (default: ``build/experiments/NAME``). The simulations run on ``workers`` cores of this machine
    (default: all), or on the Dask cluster whose scheduler has the address ``cluster``. Raises ConfigError for an invalid scenario, and
    SimulationError if a run fails, after all others have finished.
    """
    plan = plan_sweep(Path(file), full)
    out = out or RUNS / plan.folder
    work = plan.work()
    machines = _cluster(cluster, work) if cluster else _this_machine(plan, work, out, workers)
    finish(work.jobs, len(plan.labels), out, RUNS, machines)
    return Results(plan, out)


def _this_machine(plan: Plan, work: Work, out: Path, workers: int | None) -> Machines:
    return partial(this_machine, work.inputs, out / ".work", workers, plan.in_python)


def _cluster(address: str, work: Work) -> Machines:
    try:
        from frontage_sim.cluster import cluster  # Dask is optional
    except ImportError as error:
        raise SimulationError(f"{error}: install frontage-sim with its extra, frontage-sim[cluster]") from None
    return partial(cluster, address, work.inputs)

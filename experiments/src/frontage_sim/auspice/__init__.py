# SPDX-License-Identifier: Apache-2.0
"""Auspice's evaluation: the product's placement and routing of records, over simulated latencies and server queues.

`scenario` reads a scenario file, and `run` returns the rows of its experiment as a data frame. The modules in ``experiments`` each run one
kind of experiment; all others model the network, the servers, the workload and the placement schemes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import polars as pl

from frontage_sim.auspice.experiments import adaptation, load, mobility, propagation, static
from frontage_sim.auspice.scenario import Adaptation, AuspiceScenario, Load, Mobility, Propagation, Static, split

_EXPERIMENTS: dict[type[AuspiceScenario], Callable[[AuspiceScenario], pl.DataFrame]] = {
    Load: load.run,
    Mobility: mobility.run,
    Adaptation: adaptation.run,
    Static: static.run,
    Propagation: propagation.run,
}


def run(scenario: AuspiceScenario, workers: int | None = None) -> pl.DataFrame:
    """Run all parts of a scenario in parallel. The same scenario gives the same rows, whatever the number of workers."""
    parts = split(scenario)
    if workers == 1 or len(parts) == 1:
        return pl.concat([_run_part(part) for part in parts])
    frames = []
    # Spawned, not forked: polars has threads, and a forked process would never get the locks that they hold.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for number, frame in enumerate(pool.map(_run_part, parts), 1):
            print(f"\r{scenario.title}: {number} of {len(parts)}", end="\n" if number == len(parts) else "", flush=True)
            frames.append(frame)
    return pl.concat(frames)


def _run_part(part: AuspiceScenario) -> pl.DataFrame:
    return _EXPERIMENTS[type(part)](part).with_columns(seed=pl.lit(part.seed))


def simulate(scenario: AuspiceScenario, out: Path, workers: int | None = None) -> pl.DataFrame:
    """Run a scenario and also write its rows to ``rows.parquet`` in the folder ``out``."""
    rows = run(scenario, workers)
    out.mkdir(parents=True, exist_ok=True)
    rows.write_parquet(out / "rows.parquet")
    return rows

# SPDX-License-Identifier: Apache-2.0
"""Records over a wide area: Auspice's evaluation with the project's own placement and routing, latencies and service times simulated.

A scenario file names its ``experiment``; `run` gives a data frame, from which a figure's module makes table and plot.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import polars as pl

from frontage_sim.wide import adaptation, load, mobility, propagation, static
from frontage_sim.wide.scenario import Adaptation, Load, Mobility, Propagation, Static, Wide, parts

Part = Callable[[Wide], pl.DataFrame]

_EXPERIMENTS: dict[type[Wide], Part] = {
    Load: load.run,
    Mobility: mobility.run,
    Adaptation: adaptation.run,
    Static: static.run,
    Propagation: propagation.run,
}


def run(scenario: Wide, workers: int | None = None) -> pl.DataFrame:
    """All parts of a scenario side by side; the same scenario gives the same rows, whatever the number of workers."""
    every = parts(scenario)
    if workers == 1 or len(every) == 1:
        return pl.concat([_one(part) for part in every])
    frames = []
    # Not forked: polars has threads, whose locks a fork would keep for ever.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for number, frame in enumerate(pool.map(_one, every), 1):
            print(f"\r{scenario.title}: {number} of {len(every)}", end="\n" if number == len(every) else "", flush=True)
            frames.append(frame)
    return pl.concat(frames)


def _one(part: Wide) -> pl.DataFrame:
    return _EXPERIMENTS[type(part)](part).with_columns(seed=pl.lit(part.seed))


def simulate(scenario: Wide, out: Path, workers: int | None = None) -> pl.DataFrame:
    """`run`, and the rows kept in ``out``."""
    rows = run(scenario, workers)
    out.mkdir(parents=True, exist_ok=True)
    rows.write_parquet(out / "rows.parquet")
    return rows

# SPDX-License-Identifier: Apache-2.0
"""Auspice's evaluation: the product's placement and routing of records, over simulated latencies and server queues.

`scenario` reads a scenario file, and `run` returns the rows of its experiment as a data frame. The modules in ``experiments`` each run one
kind of experiment; all others model the network, the servers, the workload and the placement schemes.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from frontage_sim.auspice.experiments import adaptation, load, mobility, perturbation, propagation, static
from frontage_sim.auspice.scenario import Adaptation, AuspiceScenario, Load, Mobility, Perturbation, Propagation, Static, split

_EXPERIMENTS: dict[type[AuspiceScenario], Callable[[AuspiceScenario], pl.DataFrame]] = {
    Load: load.run,
    Mobility: mobility.run,
    Adaptation: adaptation.run,
    Static: static.run,
    Propagation: propagation.run,
    Perturbation: perturbation.run,
}


def run(scenario: AuspiceScenario) -> pl.DataFrame:
    """Return the rows of a scenario, part by part. The same scenario gives the same rows."""
    return pl.concat([_EXPERIMENTS[type(part)](part).with_columns(seed=pl.lit(part.seed)) for part in split(scenario)])

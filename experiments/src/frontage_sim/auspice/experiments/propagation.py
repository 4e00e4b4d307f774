# SPDX-License-Identifier: Apache-2.0
"""Time until all replicas have confirmed an update to the client (Auspice, section 2.3.2)."""

from __future__ import annotations

import numpy as np
import polars as pl

from frontage_sim.auspice.scenario import AuspiceScenario, Propagation
from frontage_sim.auspice.topology import draw_topology

_WEST, _EAST, _NORTH = -130.0, 32.0, 24.0
"""Bounds in degrees of the replicas' region: America north of Mexico, and Europe."""


def run(settings: AuspiceScenario) -> pl.DataFrame:
    """Return a row for each name: the duration of one update.

    The client sends the update to the nearest replica, which forwards it to the others and returns their confirmations.
    """
    assert isinstance(settings, Propagation)
    topology = draw_topology(settings.topology.servers, settings.topology.clients, settings.seed)
    in_region = (topology.server_east > _WEST) & (topology.server_east < _EAST) & (topology.server_north > _NORTH)
    candidates = np.flatnonzero(in_region)
    frames = []
    for number in settings.replicas:
        rng = np.random.default_rng([settings.seed, 9, number])
        durations = []
        for _ in range(settings.names):
            replicas = rng.choice(candidates, number, replace=False)
            client = int(rng.integers(len(topology.clients)))
            nearest = int(topology.rtt[client, replicas].argmin())
            durations.append(
                float(topology.rtt[client, replicas[nearest]] + topology.server_rtt[replicas[nearest], replicas].max())
            )
        frames.append(pl.DataFrame({"replicas": number, "duration": durations}))
    return pl.concat(frames)

# SPDX-License-Identifier: Apache-2.0
"""How long an update takes until all replicas have confirmed it to the client (Auspice, section 2.3.2)."""

from __future__ import annotations

import numpy as np
import polars as pl

from frontage_sim.wide.places import places as drawn_places
from frontage_sim.wide.scenario import Propagation, Wide

_WEST, _EAST, _NORTH = -130.0, 32.0, 24.0
"""Degrees: America north of Mexico, and Europe."""


def run(settings: Wide) -> pl.DataFrame:
    """A row for each name: one update. A client sends it to the nearest replica, and hears from every one of them by that."""
    assert isinstance(settings, Propagation)
    places = drawn_places(settings.topology.servers, settings.topology.clients, settings.seed)
    west = (places.server_east > _WEST) & (places.server_east < _EAST) & (places.server_north > _NORTH)
    candidates = np.flatnonzero(west)
    frames = []
    for replicas in settings.replicas:
        rng = np.random.default_rng([settings.seed, 9, replicas])
        took = []
        for _ in range(settings.names):
            at = rng.choice(candidates, replicas, replace=False)
            client = int(rng.integers(len(places.clients)))
            first = int(places.rtt[client, at].argmin())
            took.append(float(places.rtt[client, at[first]] + places.between[at[first], at].max()))
        frames.append(pl.DataFrame({"replicas": replicas, "took": took}))
    return pl.concat(frames)

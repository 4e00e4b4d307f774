"""Replicas near each name's demand against the same static sites for all names (Auspice, section 2.3.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
from frontage.placement.engine import Engine
from frontage.placement.values import Demand, Parameters

from frontage_sim.wide.places import Array, Places
from frontage_sim.wide.places import places as drawn_places
from frontage_sim.wide.scenario import Static, Wide
from frontage_sim.wide.schemes import Flags, sites
from frontage_sim.wide.workload import keys, shares

_FACTOR = 0.05
"""How much round trips between two places differ from each other: the standard deviation of their logarithm."""


def run(settings: Wide) -> pl.DataFrame:
    """A row for each name and number of replicas: the median of its lookups. Static sites are the best for all names together."""
    assert isinstance(settings, Static)
    places = drawn_places(settings.world.servers, settings.world.clients, settings.seed)
    rng = np.random.default_rng([settings.seed, 7])
    demand = shares(rng.integers(len(places.clients), size=settings.names), np.full(settings.names, settings.locality), places)
    everyone = placed(demand.sum(axis=0, keepdims=True), settings.sites, partial(Parameters, weighed=len(places.clients)), places)
    fixed = np.repeat(everyone, settings.names, axis=0)
    anywhere = np.zeros_like(fixed)
    anywhere[:, rng.choice(len(places.servers), settings.sites, replace=False)] = True
    frames = [
        _measured(scheme, settings.sites, chosen, demand, settings, places)
        for scheme, chosen in (("static, best sites", fixed), ("static, any sites", anywhere))
    ]
    for replicas in settings.replicas:
        ours = placed(demand, replicas, Parameters, places)
        frames.append(_measured("frontage", replicas, ours, demand, settings, places))
        frames.append(
            _measured(
                "auspice", replicas, placed(demand, replicas, partial(Parameters, nu=0.5, weighed=0), places), demand, settings, places
            )
        )
    return pl.concat(frames)


def placed(demand: Array, replicas: int, parameters: Callable[..., Parameters], places: Places) -> Flags:
    """[name, server], by the product's engine, with so many replicas of each."""
    engine = Engine(sites(places, 1e6), parameters(min_replicas=replicas, max_replicas=replicas))
    names = keys(tuple(f"name-{i}" for i in range(len(demand))))
    engine.observe(Demand.dense(names, demand, np.zeros_like(demand)))
    engine.plan()
    return engine.masks(names)


def _measured(scheme: str, replicas: int, chosen: Flags, demand: Array, settings: Static, places: Places) -> pl.DataFrame:
    rng = np.random.default_rng([settings.seed, 8])
    near = np.where(chosen[:, None], places.rtt, np.inf).min(axis=2)
    medians = []
    for name, share in enumerate(demand):
        clients = rng.choice(len(share), settings.lookups, p=share)
        medians.append(float(np.median(near[name, clients] * rng.lognormal(0, _FACTOR, settings.lookups))))
    return pl.DataFrame({"scheme": scheme, "replicas": replicas, "lookup": medians})

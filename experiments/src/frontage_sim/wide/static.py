# SPDX-License-Identifier: Apache-2.0
"""Replicas near each name's demand against the same static sites for all names (Auspice, section 2.3.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.values import Demand, Parameters
from frontage_sim.runner import SimulationError
from frontage_sim.wide.latencies import Array
from frontage_sim.wide.places import Places
from frontage_sim.wide.places import places as drawn_places
from frontage_sim.wide.scenario import Static, Wide
from frontage_sim.wide.schemes import Flags, sites
from frontage_sim.wide.workload import TOP, keys

_FACTOR = 0.05
"""How much round trips between two places differ from each other: the standard deviation of their logarithm."""


def run(settings: Wide) -> pl.DataFrame:
    """A row for each name and number of replicas: the median of its lookups, and the share of all names' that go 100 ms too far.

    Static sites are the best for all names together. Raises SimulationError for a country that no client is in.
    """
    assert isinstance(settings, Static)
    places = drawn_places(settings.topology.servers, settings.topology.clients, settings.seed)
    return pl.concat([_of_home(home, settings, places).with_columns(home=pl.lit(home)) for home in settings.homes])


def _of_home(home: str, settings: Static, places: Places) -> pl.DataFrame:
    rng = np.random.default_rng([settings.seed, 7])
    centres = np.flatnonzero((places.countries == home) | (home == "any"))
    if not len(centres):
        there = ", ".join(np.unique(places.countries).tolist())
        raise SimulationError(f"homes: of the clients that seed {settings.seed} draws none is in {home}; they are in {there}")
    demand = by_country(rng.choice(centres, settings.names), settings.locality, places)
    everyone = placed(demand.sum(axis=0, keepdims=True), settings.sites, partial(Parameters, weighed=len(places.clients)), places)[
        0
    ]
    anywhere = np.zeros_like(everyone)
    anywhere[rng.choice(len(places.servers), settings.sites, replace=False)] = True
    frames = []
    for scheme, fixed in (("static, best sites", everyone), ("static, any sites", anywhere)):
        near = places.rtt[:, fixed].min(axis=1)
        frames.append(_measured(scheme, settings.sites, np.tile(near, (settings.names, 1)), demand, settings))
        for share in settings.closest:
            caught = by_anycast(places.rtt[:, fixed], share, np.random.default_rng([settings.seed, 12]))
            frame = _measured(
                f"{scheme}, anycast {share:.0%}", settings.sites, np.tile(caught, (settings.names, 1)), demand, settings
            )
            frames.append(frame.with_columns(pl.lit(float(demand.mean(axis=0) @ (caught - near > 0.1))).alias("astray")))
    for replicas in settings.replicas:
        for scheme, parameters in (("frontage", Parameters), ("auspice", partial(Parameters, nu=0.5, weighed=0))):
            chosen = placed(demand, replicas, parameters, places)
            near = np.where(chosen[:, None], places.rtt, np.inf).min(axis=2)
            frames.append(_measured(scheme, replicas, near, demand, settings))
    return pl.concat(frames)


def by_country(centres: npt.NDArray[np.int64], locality: float, places: Places) -> Array:
    """[name, client]: lookups come from the country of the name's own client, and of others the less, the farther they are.

    By Zipf's law over countries in this order, such that a tenth of the countries has the locality (Alexa's are by country; section 2.1).
    All clients of a country ask alike.
    """
    countries, of = np.unique(places.countries, return_inverse=True)
    weights = zipf(len(countries), max(1, round(TOP * len(countries))), locality)
    clients = np.bincount(of)
    found = np.empty((len(centres), len(of)))
    for name, centre in enumerate(centres.tolist()):
        away = np.array([places.apart[centre, of == country].min() for country in range(len(countries))])
        away[of[centre]] = -1.0
        share = np.empty(len(countries))
        share[np.argsort(away, kind="stable")] = weights
        found[name] = (share / clients)[of]
    return found


def zipf(number: int, top: int, locality: float) -> Array:
    """Shares by rank whose first ``top`` have ``locality`` together; the exponent is what that takes."""
    ranks = np.arange(1.0, number + 1)
    low, high = 0.0, 20.0
    for _ in range(60):
        exponent = (low + high) / 2
        weights: Array = ranks**-exponent / (ranks**-exponent).sum()
        low, high = (exponent, high) if weights[:top].sum() < locality else (low, exponent)
    return weights


def by_anycast(rtt: Array, closest: float, rng: np.random.Generator) -> Array:
    """Seconds, by client, to the site where routing takes it: the closest for that share, else the next one for that share, and so on."""
    rank = np.minimum(rng.geometric(closest, len(rtt)), rtt.shape[1]) - 1
    found: Array = np.take_along_axis(np.sort(rtt, axis=1), rank[:, None], axis=1)[:, 0]
    return found


def placed(demand: Array, replicas: int, parameters: Callable[..., Parameters], places: Places) -> Flags:
    """[name, server], by the product's engine, with so many replicas of each."""
    engine = Engine(sites(places, 1e6), parameters(min_replicas=replicas, max_replicas=replicas))
    names = keys(tuple(f"name-{i}" for i in range(len(demand))))
    engine.observe(Demand.dense(names, demand, np.zeros_like(demand)))
    engine.plan()
    return engine.masks(names)


def _measured(scheme: str, replicas: int, rtt: Array, demand: Array, settings: Static) -> pl.DataFrame:
    """``rtt``: [name, client]."""
    rng = np.random.default_rng([settings.seed, 8])
    medians = []
    for way, share in zip(rtt, demand, strict=True):
        clients = rng.choice(len(share), settings.lookups, p=share)
        medians.append(float(np.median(way[clients] * rng.lognormal(0, _FACTOR, settings.lookups))))
    return pl.DataFrame({"scheme": scheme, "replicas": replicas, "lookup": medians, "astray": 0.0})

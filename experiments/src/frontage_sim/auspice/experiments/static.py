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
from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.scenario import AuspiceScenario, Static
from frontage_sim.auspice.schemes import Flags, placement_sites
from frontage_sim.auspice.topology import Topology, draw_topology
from frontage_sim.auspice.workload import TOP_SHARE, record_keys
from frontage_sim.jobs import SimulationError

_RTT_DEVIATION = 0.05
"""Standard deviation of the logarithm of the RTT between the same two nodes, from one lookup to the next."""


def run(settings: AuspiceScenario) -> pl.DataFrame:
    """Return a row for each scheme, name and number of replicas: the name's median lookup latency.

    The rows also have the share of all lookups that anycast takes more than 100 ms too far. The static sites are the best ones for all
    names together, or random ones. Raises SimulationError for a home country without a client.
    """
    assert isinstance(settings, Static)
    topology = draw_topology(settings.topology.servers, settings.topology.clients, settings.seed)
    return pl.concat([_run_home(home, settings, topology).with_columns(home=pl.lit(home)) for home in settings.homes])


def _run_home(home: str, settings: Static, topology: Topology) -> pl.DataFrame:
    rng = np.random.default_rng([settings.seed, 7])
    centres = np.flatnonzero((topology.countries == home) | (home == "any"))
    if not len(centres):
        countries = ", ".join(np.unique(topology.countries).tolist())
        raise SimulationError(f'homes: no client of seed {settings.seed} is in "{home}": use a country of its clients: {countries}')
    demand = demand_by_country(rng.choice(centres, settings.names), settings.locality, topology)
    total = demand.sum(axis=0, keepdims=True)
    best_sites = place(total, settings.sites, partial(Parameters, weighed=len(topology.clients)), topology)[0]
    random_sites = np.zeros_like(best_sites)
    random_sites[rng.choice(len(topology.servers), settings.sites, replace=False)] = True
    frames = []
    for scheme, sites in (("static, best sites", best_sites), ("static, any sites", random_sites)):
        nearest = topology.rtt[:, sites].min(axis=1)
        frames.append(_measure(scheme, settings.sites, np.tile(nearest, (settings.names, 1)), demand, settings))
        for closest in settings.closest:
            caught = draw_anycast(topology.rtt[:, sites], closest, np.random.default_rng([settings.seed, 12]))
            name = f"{scheme}, anycast {closest:.0%}"
            frame = _measure(name, settings.sites, np.tile(caught, (settings.names, 1)), demand, settings)
            frames.append(frame.with_columns(pl.lit(float(demand.mean(axis=0) @ (caught - nearest > 0.1))).alias("misrouted")))
    for replicas in settings.replicas:
        for scheme, parameters in (("frontage", Parameters), ("auspice", partial(Parameters, nu=0.5, weighed=0))):
            chosen = place(demand, replicas, parameters, topology)
            nearest = np.where(chosen[:, None], topology.rtt, np.inf).min(axis=2)
            frames.append(_measure(scheme, replicas, nearest, demand, settings))
    return pl.concat(frames)


def demand_by_country(centres: npt.NDArray[np.int64], locality: float, topology: Topology) -> Array:
    """Return each client's share of a name's lookups, [name, client].

    Most lookups come from the country of the name's centre, and the fewer from another country, the farther away it is. The shares follow
    Zipf's law over the countries in this order, such that the first tenth has the share ``locality`` (Alexa's data are by country; section
    2.1). All clients of a country have equal shares.
    """
    countries, country_of = np.unique(topology.countries, return_inverse=True)
    weights = zipf(len(countries), max(1, round(TOP_SHARE * len(countries))), locality)
    clients = np.bincount(country_of)
    shares = np.empty((len(centres), len(country_of)))
    for name, centre in enumerate(centres.tolist()):
        distance = np.array([topology.client_distance[centre, country_of == country].min() for country in range(len(countries))])
        distance[country_of[centre]] = -1.0
        share = np.empty(len(countries))
        share[np.argsort(distance, kind="stable")] = weights
        shares[name] = (share / clients)[country_of]
    return shares


def zipf(number: int, top: int, locality: float) -> Array:
    """Return shares by rank that follow Zipf's law, with the exponent for which the first ``top`` have ``locality`` together."""
    ranks = np.arange(1.0, number + 1)
    low, high = 0.0, 20.0
    for _ in range(60):
        exponent = (low + high) / 2
        weights: Array = ranks**-exponent / (ranks**-exponent).sum()
        low, high = (exponent, high) if weights[:top].sum() < locality else (low, exponent)
    return weights


def draw_anycast(rtt: Array, closest: float, rng: np.random.Generator) -> Array:
    """Return each client's RTT in seconds to the site to which anycast takes it.

    That is the closest site with probability ``closest``, else the next one with the same probability, and so on.
    """
    rank = np.minimum(rng.geometric(closest, len(rtt)), rtt.shape[1]) - 1
    drawn: Array = np.take_along_axis(np.sort(rtt, axis=1), rank[:, None], axis=1)[:, 0]
    return drawn


def place(demand: Array, replicas: int, parameters: Callable[..., Parameters], topology: Topology) -> Flags:
    """Return the placement [name, server] by the product's engine with exactly ``replicas`` replicas per name."""
    engine = Engine(placement_sites(topology, 1e6), parameters(min_replicas=replicas, max_replicas=replicas))
    keys = record_keys(tuple(f"name-{i}" for i in range(len(demand))))
    engine.observe(Demand.dense(keys, demand, np.zeros_like(demand)))
    engine.plan()
    return engine.masks(keys)


def _measure(scheme: str, replicas: int, rtt: Array, demand: Array, settings: Static) -> pl.DataFrame:
    """Return the median lookup latency of each name; ``rtt`` is [name, client]."""
    rng = np.random.default_rng([settings.seed, 8])
    medians = []
    for name_rtt, share in zip(rtt, demand, strict=True):
        clients = rng.choice(len(share), settings.lookups, p=share)
        medians.append(float(np.median(name_rtt[clients] * rng.lognormal(0, _RTT_DEVIATION, settings.lookups))))
    return pl.DataFrame({"scheme": scheme, "replicas": replicas, "lookup": medians, "misrouted": 0.0})

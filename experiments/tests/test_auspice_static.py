# SPDX-License-Identifier: Apache-2.0
"""Demand by country and anycast of figure 6, and scenarios with several topologies."""

import numpy as np
import pytest

from frontage_sim.auspice import run
from frontage_sim.auspice.experiments.static import demand_by_country, draw_anycast, zipf
from frontage_sim.auspice.scenario import Load, Names, Perturbation, Static, TopologySize, split
from frontage_sim.auspice.topology import draw_topology
from frontage_sim.jobs import SimulationError


def test_first_tenth_of_zipf_ranks_has_the_locality() -> None:
    for number, top in ((30, 3), (10, 1), (45, 4)):
        shares = zipf(number, top, 0.8)
        assert shares[:top].sum() == pytest.approx(0.8)
        assert shares.sum() == pytest.approx(1)
        assert (np.diff(shares) < 0).all()


def test_most_lookups_come_from_the_clients_country() -> None:
    topology = draw_topology(80, 100, 1)
    centres = np.arange(100)
    demand = demand_by_country(centres, 0.8, topology)
    assert demand.sum(axis=1) == pytest.approx(1)
    for centre, shares in zip(centres, demand, strict=True):
        by_country = {country: shares[topology.countries == country].sum() for country in np.unique(topology.countries)}
        assert max(by_country, key=lambda country: by_country[country]) == topology.countries[centre]
        home = shares[topology.countries == topology.countries[centre]]
        assert home == pytest.approx(home[0])


def test_anycast_reaches_closest_site_with_given_probability() -> None:
    rtt = np.tile([0.03, 0.01, 0.02], (20_000, 1))
    rng = np.random.default_rng(1)
    drawn = draw_anycast(rtt, 0.37, rng)
    assert (drawn == 0.01).mean() == pytest.approx(0.37, abs=0.02)
    assert (drawn == 0.02).mean() == pytest.approx(0.63 * 0.37, abs=0.02)
    assert (draw_anycast(rtt, 1.0, rng) == 0.01).all()


def test_country_without_client_is_rejected() -> None:
    scenario = Static(experiment="static", title="x", names=2, homes=("AQ",), topology=TopologySize(servers=20, clients=5))
    with pytest.raises(SimulationError, match="AQ"):
        run(scenario)


def test_topologies_use_different_seeds() -> None:
    scenario = Load(experiment="load", title="x", seed=3, topologies=2, loads=(1, 2), schemes=("random-3",))
    assert [(part.seed, part.loads) for part in split(scenario) if isinstance(part, Load)] == [
        (3, (1,)),
        (3, (2,)),
        (4, (1,)),
        (4, (2,)),
    ]
    small = Static(
        experiment="static",
        title="x",
        names=5,
        topologies=2,
        replicas=(5,),
        topology=TopologySize(servers=20, clients=20),
        lookups=10,
    )
    rows = run(small)
    assert rows["seed"].unique(maintain_order=True).to_list() == [1, 2]
    assert set(rows["scheme"]) >= {"static, best sites", "static, best sites, anycast 37%", "frontage", "auspice"}


def test_replicas_by_locality_shorten_paths_and_random_ones_spread_load() -> None:
    scenario = Perturbation(
        experiment="perturbation",
        title="x",
        topology=TopologySize(servers=20, clients=20),
        names=Names(number=60),
        loads=(6,),
        nu=(0, 1),
    )
    rows = run(scenario)
    assert rows.equals(run(scenario)), "the same scenario gives the same rows"
    for choice in ("paper", "frontage"):
        found = {row["nu"]: row for row in rows.filter(choice=choice, plan="first").iter_rows(named=True)}
        assert found[1.0]["mean"] < found[0.0]["mean"]
        assert found[1.0]["fullest"] > found[0.0]["fullest"]

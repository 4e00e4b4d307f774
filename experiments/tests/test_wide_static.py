# SPDX-License-Identifier: Apache-2.0
"""Figure 6's demand by country and its anycast, and topologies that are drawn several times."""

import numpy as np
import pytest

from frontage_sim.runner import SimulationError
from frontage_sim.wide import run
from frontage_sim.wide.places import places
from frontage_sim.wide.scenario import Load, Static, Topology, parts
from frontage_sim.wide.static import by_anycast, by_country, zipf


def test_tenth_of_countries_has_the_locality() -> None:
    for number, top in ((30, 3), (10, 1), (45, 4)):
        shares = zipf(number, top, 0.8)
        assert shares[:top].sum() == pytest.approx(0.8)
        assert shares.sum() == pytest.approx(1)
        assert (np.diff(shares) < 0).all()


def test_most_lookups_come_from_the_clients_country() -> None:
    topology = places(80, 100, 1)
    centres = np.arange(100)
    demand = by_country(centres, 0.8, topology)
    assert demand.sum(axis=1) == pytest.approx(1)
    for centre, shares in zip(centres, demand, strict=True):
        of = {country: shares[topology.countries == country].sum() for country in np.unique(topology.countries)}
        assert max(of, key=lambda country: of[country]) == topology.countries[centre]
        here = shares[topology.countries == topology.countries[centre]]
        assert here == pytest.approx(here[0])


def test_anycast_reaches_closest_site_with_given_probability() -> None:
    rtt = np.tile([0.03, 0.01, 0.02], (20_000, 1))
    rng = np.random.default_rng(1)
    found = by_anycast(rtt, 0.37, rng)
    assert (found == 0.01).mean() == pytest.approx(0.37, abs=0.02)
    assert (found == 0.02).mean() == pytest.approx(0.63 * 0.37, abs=0.02)
    assert (by_anycast(rtt, 1.0, rng) == 0.01).all()


def test_country_without_client_is_rejected() -> None:
    scenario = Static(experiment="static", title="x", names=2, homes=("AQ",), topology=Topology(servers=20, clients=5))
    with pytest.raises(SimulationError, match="AQ"):
        run(scenario, 1)


def test_topologies_use_different_seeds() -> None:
    scenario = Load(experiment="load", title="x", seed=3, topologies=2, loads=(1, 2), schemes=("random-3",))
    assert [(part.seed, part.loads) for part in parts(scenario) if isinstance(part, Load)] == [
        (3, (1,)),
        (3, (2,)),
        (4, (1,)),
        (4, (2,)),
    ]
    small = Static(
        experiment="static", title="x", names=5, topologies=2, replicas=(5,), topology=Topology(servers=20, clients=20), lookups=10
    )
    rows = run(small, 1)
    assert rows["seed"].unique(maintain_order=True).to_list() == [1, 2]
    assert set(rows["scheme"]) >= {"static, best sites", "static, best sites, anycast 37%", "frontage", "auspice"}

# SPDX-License-Identifier: Apache-2.0
"""Wide-area experiments: their parts against calculated values, and small runs."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from frontage.config import ConfigError
from frontage_records.routing import Routing
from frontage_sim.wide import run
from frontage_sim.wide.dht import Dht, shares
from frontage_sim.wide.latencies import FITTED, NODES, distances
from frontage_sim.wide.lookups import Clients, Lookup, Network, simulate
from frontage_sim.wide.places import Places, nodes, places
from frontage_sim.wide.scenario import Costs, Load, Mobility, Names, Topology, is_wide, load, parts
from frontage_sim.wide.servers import Servers
from frontage_sim.wide.updates import update
from frontage_sim.wide.workload import workload

SMALL = {"topology": {"servers": 10, "clients": 10}, "names": {"number": 20}, "duration": 20, "samples": 10}


def line(*at: float) -> Places:
    """Return servers on a line, separated by seconds of round-trip time, and one client at 0."""
    where = np.array(at)
    names = tuple(str(place) for place in at)
    return Places(
        names, ("0",), where[None] + 0.001, np.abs(where[:, None] - where), np.zeros((1, 1)), where, where, np.array(["US"])
    )


def test_great_circles() -> None:
    km = distances(np.array([(51.51, -0.13), (40.71, -74.01), (51.51, -0.13)]))
    assert km[0, 1] == pytest.approx(5570, rel=0.01)
    assert km[0, 0] == 0
    assert km[0, 2] < 0.1


def test_round_trips_match_planetlab_and_physics() -> None:
    # From the measured matrix: medians of all pairs, of the nearest, third and eighth of 80 random nodes, and of the nearest of three.
    measured = {"pairs": 133.9, 1: 6.2, 3: 16.6, 8: 32.2, "of three": 53.4}
    found: dict[object, list[float]] = {what: [] for what in measured}
    for seed in range(10):
        topology = nodes(FITTED, np.random.default_rng(seed))
        assert len(topology.names) == len(set(topology.names)) == NODES
        assert (topology.rtt == topology.rtt.T).all()
        km = distances(topology.where)
        assert (topology.rtt >= km * 1e-5).all()
        one, other = np.triu_indices(NODES, 1)
        assert (topology.rtt[one, other] > 0).all()
        found["pairs"].append(np.median(topology.rtt[one, other]))
        drawn = np.random.default_rng(seed).permutation(NODES)
        of = topology.rtt[np.ix_(drawn[:80], drawn[80:160])]
        found["of three"].append(np.median(of[:, :3].min(axis=1)))
        for rank in (1, 3, 8):
            found[rank].append(np.median(np.sort(of, axis=1)[:, rank - 1]))
    assert {what: np.mean(values) * 1e3 for what, values in found.items()} == pytest.approx(measured, rel=0.2)


def test_equal_seeds_draw_equal_nodes() -> None:
    found = places(80, 80, 1)
    assert not set(found.servers) & set(found.clients)
    assert (found.between == found.between.T).all()
    assert (found.rtt > 0).all()
    assert (places(80, 80, 1).rtt == found.rtt).all()
    assert (places(80, 80, 2).rtt != found.rtt).any()


def test_workload_matches_table_1() -> None:
    topology = places(80, 80, 1)
    made = workload(Names(number=1000), 1.0, topology, 1)
    devices = ~made.service
    assert made.service.sum() == 100
    assert made.reads.sum() == pytest.approx(200 * 80)
    thirds = made.reads[devices].sum(), made.writes[devices].sum(), made.reads[made.service].sum()
    assert thirds == pytest.approx((8000, 8000, 8000))
    assert made.writes[made.service].sum() == pytest.approx(0.8)
    top = np.sort(made.shares, axis=1)[:, -8:].sum(axis=1)
    assert top[devices] == pytest.approx(0.75)
    assert top[made.service] == pytest.approx(0.8)
    assert made.shares.sum(axis=1) == pytest.approx(1)


def test_beehive_closed_form() -> None:
    # b = 32, alpha = 0.9, C = 1, three levels: the paper's example of about a thousandth of the objects at level 0.
    found = shares(32, 3, 0.9, 1.0)
    d = 32 ** (0.1 / 0.9)
    assert found[0] == pytest.approx((2 / (1 + d + d * d)) ** 10)
    assert found == sorted(found)
    # The constraint holds: the saved hops, on average over lookups by Zipf's law.
    assert sum(x**0.1 for x in found) == pytest.approx(2)
    assert shares(16, 2, 0.5, 0.0) == [1.0, 1.0]
    assert shares(16, 2, 0.5, 2.0) == [0.0, 0.0]


def test_every_dht_hop_is_closer_to_the_name() -> None:
    topology = places(80, 80, 1)
    guids = tuple(f"name-{i}" for i in range(100))
    dht = Dht(guids, topology, 4, 3)
    chosen = dht.replicate(1 / np.arange(1, 101), 0.5, 20)
    assert chosen.sum(axis=1).mean() == pytest.approx(20, abs=3)
    assert (chosen.sum(axis=1) >= 3).all()
    assert chosen[0].sum() > chosen[99].sum()
    for name in range(100):
        for entry in range(0, 80, 7):
            way = dht.route(name, entry, chosen[name])
            assert chosen[name, [entry, *way][-1]]
            assert len(way) <= dht.levels + 1


def test_waiting_time_follows_pollaczek_khinchine() -> None:
    costs = Costs(write=1, serves=1000, told=1000, shared=1)
    servers = Servers(np.array([500.0]), costs, np.random.default_rng(1))
    waits = [servers.wait(0, 0.0) for _ in range(20_000)]
    # M/M/1 at half its rate: 1 ms of service, and the same in the queue on average.
    assert np.mean(waits) == pytest.approx(0.002, rel=0.05)


def test_overload_accumulates_work() -> None:
    costs = Costs(write=4, serves=1000, told=1000, shared=2)
    servers = Servers(np.array([500.0, 500.0]), costs, np.random.default_rng(1))
    # 4000 units a second for two servers that do 1000 each: after 10 s, 20,000 units are left, or 10 s.
    assert servers.wait(0, 10.0) == pytest.approx(10, rel=0.05)
    assert servers.wait(1, 10.0) == pytest.approx(10, rel=0.05)


def test_updates_take_one_round_or_two() -> None:
    # The client is at 0, the replicas at 10, 30 and 70 ms; the middle one is the coordinator.
    topology = line(0.010, 0.030, 0.070)
    found = update(0, np.arange(3), 1, topology, np.zeros(3))
    assert found.eventual == pytest.approx(0.011)
    assert found.eventual_everywhere == pytest.approx(0.0055 + 0.030)
    # To the replica, to the coordinator, a round trip to the nearer other one, back to the first, and to the client.
    assert found.ordered == pytest.approx(0.0055 + 0.010 + 0.020 + 0.010 + 0.0055)
    assert found.ordered_everywhere == pytest.approx(0.0055 + 0.010 + 0.020 + 0.020)


def test_lookup_moves_on_from_slow_server() -> None:
    topology = line(0.010, 0.050)
    clients = Clients(topology, Routing(controllers=1))
    clients.routers[0].learn("a", (0, 1), 0.0)
    network = Network(topology, lambda server, _: 5.0 if server == 0 else 0.0)
    took = simulate([Lookup(0.0, 0, 0), Lookup(3.0, 0, 0)], ("a",), clients, network)
    assert took[0] == pytest.approx(1.0 + 0.051)  # the minimum timeout, and the other server
    assert clients.routers[0].latency[0].penalty > 1


def test_lookup_without_answer_fails() -> None:
    topology = line(0.010, 0.050)
    clients = Clients(topology, Routing(controllers=1, ttl=1000))
    clients.routers[0].learn("a", (0, 1), 0.0)
    assert simulate([Lookup(0.0, 0, 0)], ("a",), clients, Network(topology, lambda *_: 1000.0)) == [float("inf")]


def test_stale_replica_set_costs_two_more_round_trips() -> None:
    topology = line(0.010, 0.020, 0.030)
    clients = Clients(topology, Routing(controllers=3))
    clients.routers[0].learn("a", (0,), 0.0)
    took = simulate([Lookup(0.0, 0, 0)], ("a",), clients, Network(topology, lambda *_: 0.0), lambda *_: (2,))
    assert took == [pytest.approx(0.011 + 0.011 + 0.031)]


@pytest.mark.parametrize(
    "scheme", ["frontage", "auspice", "random-3", "replicate-all", "dht-codons", "dht-en-route", "dht-closest"]
)
def test_small_runs_are_reproducible(scheme: str) -> None:
    scenario = Load.model_validate({"experiment": "load", "title": "small", "schemes": [scheme], "loads": [0.3], **SMALL})
    first, second = run(scenario, 1), run(scenario, 1)
    assert first.equals(second)
    assert first.height == 20
    assert (first["replicas"] >= 3).all()
    assert first["lookup_failed"].sum() == 0


def test_parallel_parts_give_equal_rows() -> None:
    scenario = Load.model_validate({"experiment": "load", "title": "small", "schemes": ["random-3"], "loads": [0.3, 1], **SMALL})
    assert len(parts(scenario)) == 2
    assert run(scenario, 2).equals(run(scenario, 1))


def test_mobility_matches_model_at_low_and_high_rates() -> None:
    scenario = Mobility(experiment="mobility", title="still", rates=(1e-6, 1.0), samples=10_000)
    rows = run(scenario, 1)
    assert rows["mean"][0] == pytest.approx(0.23, abs=1e-4)
    assert rows["stale"][1] == pytest.approx(rows["expected_stale"][1], abs=0.02)
    assert rows["mean"][1] == pytest.approx(rows["expected"][1], rel=0.06)


@pytest.mark.parametrize(
    "text",
    [
        "experiment: load\n",
        "experiment: none\ntitle: x\n",
        "experiment: load\ntitle: x\nloads: [fast]\n",
        "experiment: mobility\ntitle: x\nload: 1\n",
    ],
)
def test_invalid_scenarios_are_rejected(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    assert is_wide(file)
    with pytest.raises(ConfigError):
        load(file)


def test_full_scale_changes_given_fields(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("experiment: load\ntitle: x\nfull: {names.number: 77}\n")
    small, full = load(file), load(file, full=True)
    assert isinstance(small, Load)
    assert isinstance(full, Load)
    assert (small.names.number, full.names.number, full.topology) == (1000, 77, Topology())


@pytest.mark.parametrize("file", sorted((Path(__file__).parents[1] / "auspice").glob("*.yaml")), ids=lambda file: file.stem)
def test_scenarios_of_figures_are_valid(file: Path) -> None:
    assert load(file).title
    assert load(file, full=True) != load(file)
    assert isinstance(pl.read_csv(file.with_name("published.csv"), comment_prefix="#"), pl.DataFrame)

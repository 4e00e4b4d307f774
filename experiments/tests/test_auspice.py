# SPDX-License-Identifier: Apache-2.0
"""Auspice's experiments: their parts against calculated values, and small runs."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from frontage.config import ConfigError
from frontage_records.routing import Routing
from frontage_sim import sweep
from frontage_sim.auspice import run
from frontage_sim.auspice.dht import Dht, level_shares
from frontage_sim.auspice.latency_model import FITTED, NODES, distances
from frontage_sim.auspice.lookups import Clients, Lookup, Network, simulate_lookups
from frontage_sim.auspice.queues import ServerQueues
from frontage_sim.auspice.scenario import Costs, Load, Mobility, Names, TopologySize, is_auspice_scenario, load
from frontage_sim.auspice.topology import Topology, draw_planetlab, draw_topology
from frontage_sim.auspice.updates import update_latency
from frontage_sim.auspice.workload import draw_workload

SMALL = {"topology": {"servers": 10, "clients": 10}, "names": {"number": 20}, "duration": 20, "samples": 10}


def line(*rtts: float) -> Topology:
    """Return servers on a line, with these RTTs in seconds to its start, and one client 1 ms before the start."""
    position = np.array(rtts)
    names = tuple(str(rtt) for rtt in rtts)
    between = np.abs(position[:, None] - position)
    return Topology(names, ("0",), position[None] + 0.001, between, np.zeros((1, 1)), position, position, np.array(["US"]))


def test_distances_are_along_great_circles() -> None:
    km = distances(np.array([(51.51, -0.13), (40.71, -74.01), (51.51, -0.13)]))
    assert km[0, 1] == pytest.approx(5570, rel=0.01)
    assert km[0, 0] == 0
    assert km[0, 2] < 0.1


def test_round_trips_match_planetlab_and_physics() -> None:
    # From the measured matrix: medians of all pairs, of the nearest, third and eighth of 80 random nodes, and of the nearest of three.
    measured = {"pairs": 133.9, 1: 6.2, 3: 16.6, 8: 32.2, "of three": 53.4}
    modelled: dict[object, list[float]] = {name: [] for name in measured}
    for seed in range(10):
        topology = draw_planetlab(FITTED, np.random.default_rng(seed))
        assert len(topology.names) == len(set(topology.names)) == NODES
        assert (topology.rtt == topology.rtt.T).all()
        km = distances(topology.locations)
        assert (topology.rtt >= km * 1e-5).all()
        a, b = np.triu_indices(NODES, 1)
        assert (topology.rtt[a, b] > 0).all()
        modelled["pairs"].append(np.median(topology.rtt[a, b]))
        drawn = np.random.default_rng(seed).permutation(NODES)
        rtt = topology.rtt[np.ix_(drawn[:80], drawn[80:160])]
        modelled["of three"].append(np.median(rtt[:, :3].min(axis=1)))
        for rank in (1, 3, 8):
            modelled[rank].append(np.median(np.sort(rtt, axis=1)[:, rank - 1]))
    assert {name: np.mean(values) * 1e3 for name, values in modelled.items()} == pytest.approx(measured, rel=0.2)


def test_equal_seeds_draw_equal_nodes() -> None:
    topology = draw_topology(80, 80, 1)
    assert not set(topology.servers) & set(topology.clients)
    assert (topology.server_rtt == topology.server_rtt.T).all()
    assert (topology.rtt > 0).all()
    assert (draw_topology(80, 80, 1).rtt == topology.rtt).all()
    assert (draw_topology(80, 80, 2).rtt != topology.rtt).any()


def test_workload_matches_table_1() -> None:
    topology = draw_topology(80, 80, 1)
    workload = draw_workload(Names(number=1000), 1.0, topology, 1)
    devices = ~workload.service
    assert workload.service.sum() == 100
    assert workload.reads.sum() == pytest.approx(200 * 80)
    thirds = workload.reads[devices].sum(), workload.writes[devices].sum(), workload.reads[workload.service].sum()
    assert thirds == pytest.approx((8000, 8000, 8000))
    assert workload.writes[workload.service].sum() == pytest.approx(0.8)
    top = np.sort(workload.shares, axis=1)[:, -8:].sum(axis=1)
    assert top[devices] == pytest.approx(0.75)
    assert top[workload.service] == pytest.approx(0.8)
    assert workload.shares.sum(axis=1) == pytest.approx(1)


def test_level_shares_follow_beehives_closed_form() -> None:
    # b = 32, alpha = 0.9, C = 1, three levels: the paper's example of about a thousandth of the objects at level 0.
    shares = level_shares(32, 3, 0.9, 1.0)
    d = 32 ** (0.1 / 0.9)
    assert shares[0] == pytest.approx((2 / (1 + d + d * d)) ** 10)
    assert shares == sorted(shares)
    # The constraint on the mean number of saved hops holds, if the popularity of lookups follows Zipf's law.
    assert sum(x**0.1 for x in shares) == pytest.approx(2)
    assert level_shares(16, 2, 0.5, 0.0) == [1.0, 1.0]
    assert level_shares(16, 2, 0.5, 2.0) == [0.0, 0.0]


def test_dht_routes_end_at_a_replica_within_the_hop_limit() -> None:
    topology = draw_topology(80, 80, 1)
    guids = tuple(f"name-{i}" for i in range(100))
    dht = Dht(guids, topology, 4, 3)
    chosen = dht.replicate(1 / np.arange(1, 101), 0.5, 20)
    assert chosen.sum(axis=1).mean() == pytest.approx(20, abs=3)
    assert (chosen.sum(axis=1) >= 3).all()
    assert chosen[0].sum() > chosen[99].sum()
    for name in range(100):
        for entry in range(0, 80, 7):
            path = dht.route(name, entry, chosen[name])
            assert chosen[name, [entry, *path][-1]]
            assert len(path) <= dht.levels + 1


def test_waiting_time_follows_pollaczek_khinchine() -> None:
    costs = Costs(update_cost=1, capacity=1000, planned_capacity=1000, servers_per_machine=1)
    queues = ServerQueues(np.array([500.0]), costs, np.random.default_rng(1))
    waits = [queues.wait(0, 0.0) for _ in range(20_000)]
    # M/M/1 at half its capacity: 1 ms of service, and on average 1 ms in the queue.
    assert np.mean(waits) == pytest.approx(0.002, rel=0.05)


def test_overload_accumulates_work() -> None:
    costs = Costs(update_cost=4, capacity=1000, planned_capacity=1000, servers_per_machine=2)
    queues = ServerQueues(np.array([500.0, 500.0]), costs, np.random.default_rng(1))
    # 4,000 units of work per second arrive at a machine that does 2,000: after 10 s, 20,000 units are left, which take 10 s.
    assert queues.wait(0, 10.0) == pytest.approx(10, rel=0.05)
    assert queues.wait(1, 10.0) == pytest.approx(10, rel=0.05)


def test_eventual_updates_take_one_round_and_ordered_ones_two() -> None:
    # The client is at 0, the replicas at 10, 30 and 70 ms; the middle one is the coordinator.
    topology = line(0.010, 0.030, 0.070)
    latency = update_latency(0, np.arange(3), 1, topology, np.zeros(3))
    assert latency.eventual == pytest.approx(0.011)
    assert latency.eventual_everywhere == pytest.approx(0.0055 + 0.030)
    # To the replica, to the coordinator, a round trip to the nearer other one, back to the first, and to the client.
    assert latency.ordered == pytest.approx(0.0055 + 0.010 + 0.020 + 0.010 + 0.0055)
    assert latency.ordered_everywhere == pytest.approx(0.0055 + 0.010 + 0.020 + 0.020)


def test_lookup_goes_to_next_server_after_timeout() -> None:
    topology = line(0.010, 0.050)
    clients = Clients(topology, Routing(controllers=1))
    clients.routers[0].learn("a", (0, 1), 0.0)
    network = Network(topology, lambda server, _: 5.0 if server == 0 else 0.0)
    latencies = simulate_lookups([Lookup(0.0, 0, 0), Lookup(3.0, 0, 0)], ("a",), clients, network)
    assert latencies[0] == pytest.approx(1.0 + 0.051)  # the minimum timeout, and the other server
    assert clients.routers[0].latency[0].penalty > 1


def test_lookup_without_answer_fails() -> None:
    topology = line(0.010, 0.050)
    clients = Clients(topology, Routing(controllers=1, ttl=1000))
    clients.routers[0].learn("a", (0, 1), 0.0)
    assert simulate_lookups([Lookup(0.0, 0, 0)], ("a",), clients, Network(topology, lambda *_: 1000.0)) == [float("inf")]


def test_stale_replica_set_costs_two_more_round_trips() -> None:
    topology = line(0.010, 0.020, 0.030)
    clients = Clients(topology, Routing(controllers=3))
    clients.routers[0].learn("a", (0,), 0.0)
    latencies = simulate_lookups([Lookup(0.0, 0, 0)], ("a",), clients, Network(topology, lambda *_: 0.0), lambda *_: (2,))
    assert latencies == [pytest.approx(0.011 + 0.011 + 0.031)]


@pytest.mark.parametrize(
    "scheme", ["frontage", "auspice", "random-3", "replicate-all", "dht-codons", "dht-en-route", "dht-closest"]
)
def test_equal_scenarios_give_equal_rows(scheme: str) -> None:
    scenario = Load.model_validate({"experiment": "load", "title": "small", "schemes": [scheme], "loads": [0.3], **SMALL})
    first, second = run(scenario), run(scenario)
    assert first.equals(second)
    assert first.height == 20
    assert (first["replicas"] >= 3).all()
    assert first["lookup_failed"].sum() == 0


def test_parallel_parts_give_equal_rows(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(json.dumps({"experiment": "load", "title": "small", "schemes": ["random-3"], "loads": [0.3, 1], **SMALL}))
    results = sweep(file, tmp_path / "out", workers=2)
    assert list(results.plan.labels) == ["scheme=random-3,load=0.3,seed=1", "scheme=random-3,load=1.0,seed=1"]
    assert results.table().equals(run(load(file)))
    assert all(seconds > 0 for seconds in results.core_seconds().values())
    before = (tmp_path / "out" / "scheme=random-3,load=1.0,seed=1" / "rows.parquet").stat().st_mtime_ns
    sweep(file, tmp_path / "out")
    assert (tmp_path / "out" / "scheme=random-3,load=1.0,seed=1" / "rows.parquet").stat().st_mtime_ns == before


def test_mobility_matches_model_at_low_and_high_rates() -> None:
    scenario = Mobility(experiment="mobility", title="still", rates=(1e-6, 1.0), samples=10_000)
    rows = run(scenario)
    assert rows["mean"][0] == pytest.approx(0.23, abs=1e-4)
    assert rows["stale"][1] == pytest.approx(rows["expected_stale"][1], abs=0.02)
    assert rows["mean"][1] == pytest.approx(rows["expected"][1], rel=0.06)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("experiment: load\n", "title: missing: add what the figure shows"),
        ("experiment: none\ntitle: x\n", '1:13: experiment: unknown experiment "none": use one of load, mobility'),
        ("experiment: load\ntitle: x\nloads: [fast]\n", '3:9: loads[0]: invalid number "fast"'),
        ("experiment: mobility\ntitle: x\nload: 1\n", '3:1: load: unknown key "load"'),
    ],
)
def test_invalid_scenarios_are_rejected(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    assert is_auspice_scenario(file)
    with pytest.raises(ConfigError) as rejected:
        load(file)
    assert complaint in str(rejected.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [("write", "update_cost"), ("serves", "capacity"), ("shared", "servers_per_machine"), ("told", "planned_capacity")],
)
def test_renamed_key_is_rejected_with_its_new_name(tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(f"experiment: load\ntitle: x\ncosts: {{{old}: 4}}\n")
    with pytest.raises(ConfigError, match=new):
        load(file)


def test_full_scale_changes_given_fields(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("experiment: load\ntitle: x\nfull: {names.number: 77}\n")
    small, full = load(file), load(file, full=True)
    assert isinstance(small, Load)
    assert isinstance(full, Load)
    assert (small.names.number, full.names.number, full.topology) == (1000, 77, TopologySize())


@pytest.mark.parametrize("file", sorted((Path(__file__).parents[1] / "auspice").glob("*.yaml")), ids=lambda file: file.stem)
def test_scenarios_of_figures_are_valid(file: Path) -> None:
    assert load(file).title
    assert load(file, full=True) != load(file)
    assert isinstance(pl.read_csv(file.with_name("published.csv"), comment_prefix="#"), pl.DataFrame)

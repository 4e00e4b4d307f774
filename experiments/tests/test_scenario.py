# SPDX-License-Identifier: Apache-2.0
"""Scenario files: valid and invalid fields, and the runs that they describe."""

from pathlib import Path

import pytest

from frontage.config import ConfigError
from frontage_sim import scenario
from frontage_sim.flow_sizes import flow_sizes
from frontage_sim.grid import runs
from frontage_sim.packets import shipped_program
from frontage_sim.quantity import RATE, parse
from frontage_sim.resolve import resolve
from frontage_sim.scenario import SchedulerKind, load

TESTBED = """\
title: four balancers
seeds: 2
topology: {kind: testbed, rate: 1gbit}
workload: {load: 0.8, duration: 100ms}
vary:
  balancer.policy: [hash, cclb4]
  scheduler.kind: [fifo, aifo]
full: {topology.rate: 100gbit, seeds: 3}
"""

FLOWS = """\
title: one flow
topology: {kind: graph, switches: [{name: s}], hosts: [{name: a, role: client}, {name: b, role: server}],
  links: [{ends: [s, a]}, {ends: [s, b]}]}
workload: {flows: [{client: a, server: b, size: 1MB, rpt: [[0s, 100us], [1ms, 1ms]]}]}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scenario.yaml"


def test_every_combination_runs_with_every_seed(file: Path) -> None:
    file.write_text(TESTBED)
    all_runs = runs(load(file), file)
    assert len({run.name for run in all_runs}) == len(all_runs) == 2 * 2 * 2
    last = all_runs[-1]
    assert last.name == "balancer.policy=cclb4,scheduler.kind=aifo,seed=2"
    assert last.scenario.scheduler.kind is SchedulerKind.AIFO
    assert last.scenario.workload.duration == 100_000_000


def test_label_can_set_several_fields(file: Path) -> None:
    rivals = "{tcp: {}, aifo: {scheduler.kind: aifo, transport.initial_window: 30}}"
    file.write_text(f"title: rivals\nseeds: 1\nvary:\n  rival: {rivals}\n  workload.load: [0.2, 0.8]\n")
    all_runs = runs(load(file), file)
    labels = [dict(run.labels) for run in all_runs]
    assert labels == [{"rival": rival, "workload.load": load} for rival in ("tcp", "aifo") for load in ("0.2", "0.8")]
    assert [run.scenario.transport.initial_window for run in all_runs] == [10, 10, 30, 30]


def test_websearch_steps_have_the_published_mean() -> None:
    assert flow_sizes("websearch-steps").mean() == pytest.approx(987_600.15)


@pytest.mark.parametrize(
    ("name", "mean", "short"), [("datamining", 7.47e6, 0.824), ("cachefollower", 0.765e6, 0.534), ("hadoop", 0.12e6, 0.885)]
)
def test_distributions_have_known_mean_and_share_of_short_flows(name: str, mean: float, short: float) -> None:
    sizes = flow_sizes(name)
    assert sizes.mean() == pytest.approx(mean, rel=0.005)
    assert sum(size <= 100_000 for size in sizes.representatives(1000)) / 1000 == pytest.approx(short, abs=0.002)


def test_full_scale_changes_only_given_fields(file: Path) -> None:
    file.write_text(TESTBED)
    all_runs = runs(load(file), file, full=True)
    assert len(all_runs) == 12
    topology = all_runs[0].scenario.topology
    assert isinstance(topology, scenario.Testbed)
    assert topology.rate == 100 * 10**9


def test_published_queues_ranks_and_hosts_reach_the_simulator(file: Path) -> None:
    published = "transport: {model: netbench}\nscheduler: {kind: sp-pifo-exact, rank: segment}\nworkload: {duration: 1ms}\n"
    file.write_text(
        "title: x\nseeds: 1\ntopology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 1, nics: true, queue: 80}\n" + published
    )
    (run,) = runs(load(file), file)
    resolved = resolve(run, shipped_program())
    wires = [link for link in resolved["links"] if "leaf" in link["name"] or "nic" in link["name"]]
    assert {(link["discipline"], link["queue_packets"], link["queue_bytes"]) for link in wires} == {("sp-pifo", 80, None)}
    assert {(host["tcp"]["model"], host["server"]["rank"]) for host in resolved["hosts"]} == {("netbench", "segment")}
    file.write_text("title: x\nseeds: 1\ntopology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 1, queue_bytes: 150kB}\n")
    (link, *_) = resolve(runs(load(file), file)[0], shipped_program())["links"]
    assert (link["discipline"], link["queue_packets"], link["queue_bytes"]) == ("fifo", None, 150_000)


def test_exact_aifo_has_the_limits_of_the_controller(file: Path) -> None:
    file.write_text(
        "title: x\ntopology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 1, queue: 20}\nscheduler: {kind: aifo-exact, window: 4}\n"
    )
    (link, *_) = resolve(runs(load(file), file)[0], shipped_program())["links"]
    assert link["discipline"] == {"aifo": {"limits": [20, 15, 11, 6, 2], "sample": 15}}


def test_listed_flow_without_rpt_has_none(file: Path) -> None:
    file.write_text(FLOWS.replace(", rpt: [[0s, 100us], [1ms, 1ms]]", ""))
    assert [flow["rpt"] for flow in resolve(runs(load(file), file)[0], shipped_program())["workload"]] == [None]


def test_listed_flow_has_size_and_rpt(file: Path) -> None:
    file.write_text(FLOWS)
    (only,) = runs(load(file), file)[0].scenario.workload.flows
    assert only.size == 10**6
    assert only.rpt == ((0, 100_000), (1_000_000, 1_000_000))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("titel: x\n", '1:1: titel: unknown key "titel": remove it or use one of: title, seeds'),
        ("title: x\ntopology: {kind: ring}\n", "2:11: topology: "),
        ("title: x\nworkload: {load: much}\n", '2:18: workload.load: invalid number "much": give offered bytes'),
        (
            "title: x\nworkload: {duration: 5 parsec}\n",
            'workload.duration: invalid quantity "5 parsec": not a number with one of the units ns, us',
        ),
        ("title: x\nworkload: {duration: 0.5ns}\n", 'workload.duration: invalid quantity "0.5ns": not a whole number of ns'),
        (
            "title: x\nbalancer: {weights: [1, 0]}\n",
            '2:25: balancer.weights[1]: "0" is below the minimum of 1: give the servers\' weights',
        ),
        (
            "title: x\ntopology: {kind: testbed, overhead: 24 frames}\n",
            'invalid quantity "24 frames": not a number with one of the units B, kB',
        ),
        ("title: x\ntransport: {initial_threshold: 1}\n", 'transport.initial_threshold: "1" is below the minimum of 2'),
        ("title: x\nvary: {balancer.policy: [best]}\n", "2:7: vary: balancer.policy: "),
        ("title: x\nvary: {balancer.polity: [hash]}\n", "vary: balancer.polity: "),
        ("title: x\nworkload: {sizes: huge}\n", '2:19: workload.sizes: unknown distribution "huge": use one of websearch,'),
        (
            "title: x\ntopology: {kind: graph, switches: [{name: s}], hosts: [{name: a, role: peer}, {name: b, role: peer}], "
            "links: [{ends: [s, a]}]}\n",
            "2:11: topology: b has 0 links, a host must have one: give every host one link",
        ),
        (
            "title: x\ntransport:\n  protocol: quic\n  min_rto: 5ms\n",
            '4:3: transport.min_rto: unknown key "min_rto": remove it or use one of: congestion, initial_window',
        ),
        (
            "title: x\ntransport: {max_ack_delay: 1ms}\n",
            '2:13: transport.max_ack_delay: unknown key "max_ack_delay": remove it',
        ),
        ("title: x\ntransport: {protocol: sctp}\n", "2:12: transport: "),
        (
            "title: x\ntransport: {protocol: quic, max_datagram: 100}\n",
            '2:43: transport.max_datagram: "100" is below the minimum of 1200: give',
        ),
        (
            "title: x\ntransport: {protocol: quic}\nbalancer: {policy: cheetah-ll}\n",
            "3:20: balancer.policy: cheetah-ll counts FIN and RST, which a switch cannot see in QUIC: use cheetah-rr",
        ),
        (
            "title: x\ntransport: {protocol: quic}\nvary:\n  balancer.policy: [cclb4, cheetah-ll]\n",
            "4:20: vary.balancer.policy: cheetah-ll counts FIN and RST",
        ),
        (
            "title: x\ntopology: {kind: leaf-spine}\ntransport: {protocol: quic}\n",
            "3:23: transport.protocol: QUIC's cookie is in the server's address, which only a switch that serves the VIP hides",
        ),
        (
            "title: x\ntopology: {kind: leaf-spine, queue_bytes: 150kB}\nvary:\n  scheduler.kind: [sp-pifo-exact]\n",
            "2:43: topology.queue_bytes: sp-pifo-exact limits its queue in packets: use `queue`",
        ),
        (
            "title: x\ntransport: {protocol: quic}\nscheduler: {rank: segment}\n",
            "3:19: scheduler.rank: QUIC packets have no fixed position in a flow: use unsent, or protocol tcp",
        ),
        (
            "title: x\ntopology: {kind: testbed, leaves: 3}\n",
            '2:27: topology.leaves: unknown key "leaves": remove it or use one of: kind, clients',
        ),
        (FLOWS.replace("client: a", "client: b"), '4:19: workload.flows: unknown client "b": use one of a'),
        (FLOWS.replace("server: b", "server: c"), '4:19: workload.flows: unknown server "c": use one of b'),
        (
            FLOWS.replace("size: 1MB", "size: 0B"),
            "4:49: workload.flows[0].size: 0 must be greater than 0: give bytes of the response",
        ),
        (
            FLOWS.replace("workload: {", "workload: {load: 0.5, "),
            "4:18: workload.load: not available with listed flows: remove it, or `flows`",
        ),
        (
            FLOWS.replace("{name: s}", "{name: s, balances: true}"),
            "4:19: workload.flows: clients reach servers only through the VIP if a switch serves it",
        ),
        (
            "title: x\ntopology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 2}\nworkload: {incast: 4}\n",
            "3:20: workload.incast: only 3 servers can answer a client: use at most this number",
        ),
        ("title: [x\n", "scenario.yaml:"),
        ("", "title: missing: add what the figure shows"),
    ],
)
def test_invalid_scenario_is_rejected_with_position_and_fix(file: Path, text: str, complaint: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as rejected:
        runs(load(file), file)
    assert str(rejected.value).startswith(str(file))
    assert complaint in str(rejected.value)


def test_missing_scenario_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "missing.yaml")


@pytest.mark.parametrize(("text", "value"), [("10gbit", 10**10), ("1.5 mbit", 1_500_000), ("7bit", 7)])
def test_quantities_are_exact(text: str, value: int) -> None:
    assert parse(text, RATE) == value

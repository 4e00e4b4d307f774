# SPDX-License-Identifier: Apache-2.0
"""Complete runs with the real simulator and the compiled P4 program."""

import hashlib
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from frontage.p4.reasons import outcomes
from frontage_sim import shipped_program, simulate, simulator
from frontage_sim.grid import runs
from frontage_sim.results import summaries
from frontage_sim.runner import SimulationError, run_all
from frontage_sim.scenario import load
from frontage_sim.switches import Program

TINY = """\
title: tiny
seeds: 2
topology: {kind: testbed, clients: 2, servers: 3, rate: 1gbit}
transport: {min_rto: 5ms, initial_rto: 20ms}
workload: {load: 0.6, duration: 20ms}
vary:
  scheduler.kind: [fifo, aifo, sp-pifo, pifo]
"""
RACKS = """\
title: racks
seeds: 1
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}
workload: {load: 0.5, duration: 5ms, sizes: "uniform:1-100000"}
"""

QUIC = """\
title: quic
seeds: 1
topology: {kind: testbed, clients: 2, servers: 3, rate: 1gbit}
transport: {protocol: quic, initial_rtt: 5ms, max_ack_delay: 1ms}
workload: {load: 0.6, duration: 20ms, sizes: "uniform:1-100000"}
vary:
  balancer.policy: [cclb4, hash, cheetah-rr]
"""

SWAP = """\
title: two flows that swap their RPTs
seeds: 1
topology:
  kind: graph
  switches: [{name: tor}]
  hosts: [{name: c, role: client}, {name: s1, role: server}, {name: s2, role: server}]
  links: [{ends: [tor, c], rate: 300mbit}, {ends: [tor, s1], rate: 180mbit}, {ends: [tor, s2], rate: 180mbit}]
transport: {min_rto: 1ms, initial_rto: 5ms}
scheduler: {kind: aifo}
workload:
  duration: 400ms
  drain: 0s
  flows:
    - {client: c, server: s1, size: 100MB, rpt: [[0s, 100us], [200ms, 800us]]}
    - {client: c, server: s2, size: 100MB, rpt: [[0s, 800us], [200ms, 100us]]}
record: 20ms
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY)
    return file


def digest(folder: Path) -> dict[str, str]:
    """Return the hash of each result of the simulation; `timing.json` depends on the machine."""
    files = (file for file in folder.rglob("*.*") if file.name != "timing.json" and file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_results_do_not_depend_on_workers(scenario: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    flows = simulate(scenario, one, workers=1)
    assert flows.equals(simulate(scenario, two, workers=2))
    assert digest(one) == digest(two)
    assert set(flows["scheduler.kind"]) == {"fifo", "aifo", "sp-pifo", "pifo"}
    assert (flows["end"] > flows["start"]).all()
    assert flows.filter(pl.col("seed") == 1)["size"].to_list() != flows.filter(pl.col("seed") == 2)["size"].to_list()


def test_finished_runs_are_kept(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    simulate(scenario, out)
    all_runs = runs(load(scenario), scenario)
    kept = out / all_runs[0].name / "timing.json"
    before = kept.stat().st_mtime_ns
    # The state after an interruption: one run is incomplete, another belongs to an older scenario.
    (out / all_runs[1].name).rename(out / f"{all_runs[1].name}.part")
    (out / all_runs[2].name / "resolved.sha256").write_text("another digest")
    assert simulate(scenario, out).height > 0
    assert kept.stat().st_mtime_ns == before
    assert (out / all_runs[1].name / "flows.csv").exists()
    assert not (out / f"{all_runs[1].name}.part").exists()


def test_runs_of_other_scenarios_are_reused(scenario: Path, tmp_path: Path) -> None:
    simulate(scenario, tmp_path / "finished" / "one")
    alone = tmp_path / "alone.yaml"
    alone.write_text(
        TINY.replace("[fifo, aifo, sp-pifo, pifo]", "[aifo]").replace("scheduler.kind:", "workload.load: [0.6]\n  scheduler.kind:")
    )
    all_runs = runs(load(alone), alone)
    not_executable = tmp_path / "simulator"
    not_executable.write_bytes(simulator().read_bytes())  # the same digest, but running it fails
    run_all(all_runs, [shipped_program()] * len(all_runs), not_executable, tmp_path / "out", tmp_path / "finished")
    copy, original = tmp_path / "out" / all_runs[0].name, tmp_path / "finished" / "one" / "scheduler.kind=aifo,seed=1"
    assert digest(copy) == digest(original)
    assert (copy / "timing.json").read_bytes() == (original / "timing.json").read_bytes()


def test_quic_servers_are_found_by_connection_id(tmp_path: Path) -> None:
    file = tmp_path / "quic.yaml"
    file.write_text(QUIC)
    flows = simulate(file, tmp_path / "out")
    all_runs = runs(load(file), file)
    for run, summary in zip(all_runs, summaries(all_runs, tmp_path / "out"), strict=True):
        begun = summary["flows"]["begun"]
        assert (
            begun
            == summary["flows"]["ended"]
            == flows.filter(pl.col("balancer.policy") == run.labels["balancer.policy"]).height
            > 20
        )
        counted: Counter[str] = Counter()
        for balancer in ("lb1", "lb2"):
            for index, packets in summary["counters"][balancer]["FrontageIngress.outcomes"].items():
                counted[outcomes()[int(index)].name] += packets
        assigned = "assigned-" + run.labels["balancer.policy"].removeprefix("cheetah-")
        # The policy assigns each flow once; then its packets are matched by connection id, and each response reports loads.
        assert set(counted) == {assigned, "retrieved-cid", "insight"}
        assert counted[assigned] == begun < counted["retrieved-cid"]


def test_flow_with_shorter_rpt_is_served_first(tmp_path: Path) -> None:
    file = tmp_path / "swap.yaml"
    file.write_text(SWAP)
    received = simulate(file, tmp_path / "out", table="throughput")
    received_at = {(row["time"], row["flow"]): row["received"] for row in received.iter_rows(named=True)}
    half, settled, end = 200_000_000, 300_000_000, 400_000_000
    # The preferred flow gets 180 Mbit/s, the other the rest of 300.
    assert received_at[half, 1] > 1.3 * received_at[half, 2]
    assert received_at[end, 2] - received_at[settled, 2] > 1.3 * (received_at[end, 1] - received_at[settled, 1])


def test_flows_between_racks_complete(tmp_path: Path) -> None:
    file = tmp_path / "racks.yaml"
    file.write_text(RACKS)
    flows = simulate(file, tmp_path / "out")
    assert flows.height > 100
    assert (flows["client"] != flows["server"]).all()


def test_incast_uses_requested_number_of_servers(tmp_path: Path) -> None:
    file = tmp_path / "incast.yaml"
    file.write_text(RACKS.replace("workload: {", "workload: {incast: 3, "))
    flows = simulate(file, tmp_path / "out")
    bursts = flows.group_by("client", "start").agg(pl.len(), pl.col("server").n_unique().alias("servers"))
    assert bursts.height > 30
    assert bursts.select((pl.col("len") == 3).all(), (pl.col("servers") == 3).all()).row(0) == (True, True)


def test_frame_overhead_delays_flows(tmp_path: Path) -> None:
    times = []
    for overhead in ("0B", "1000B"):
        file = tmp_path / f"racks-{overhead}.yaml"
        file.write_text(RACKS.replace("hosts: 2", f"hosts: 2, nics: true, overhead: {overhead}"))
        times.append(simulate(file, tmp_path / overhead).select(pl.col("end") - pl.col("start")).sum().item())
    assert times[1] > 1.5 * times[0]


def test_simulator_errors_are_reported(scenario: Path, tmp_path: Path) -> None:
    (run, *_) = runs(load(scenario), scenario)
    broken = Program(shipped_program().p4info, scenario)
    with pytest.raises(SimulationError, match=r"seed=1: .*programs.frontage"):
        run_all([run], [broken], simulator(), tmp_path / "out", tmp_path)
    assert not (tmp_path / "out" / run.name).exists()


def test_flows_follow_server_weights(tmp_path: Path) -> None:
    file = tmp_path / "weights.yaml"
    file.write_text(
        "title: weights\nseeds: 1\ntopology: {kind: testbed, clients: 1, servers: 4, rate: 1gbit}\n"
        "balancer: {policy: cheetah-rr, weights: [3, 1]}\nworkload: {duration: 20ms, sizes: 'uniform:1-10000'}\n"
    )
    flows = simulate(file, tmp_path / "out")
    rounds = flows.height // 8  # each round assigns as many flows to a server as its weight
    first = flows.sort("start").head(8 * rounds)
    assert dict(first["server"].value_counts().iter_rows()) == {"s1": 3 * rounds, "s2": rounds, "s3": 3 * rounds, "s4": rounds}

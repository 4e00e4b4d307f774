"""Whole runs, with the real simulator and the compiled program."""

import hashlib
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from frontage.p4.reasons import outcomes
from frontage_sim import compiled, simulate, simulator
from frontage_sim.grid import runs
from frontage_sim.results import summaries
from frontage_sim.runner import SimulationError, run_all
from frontage_sim.scenario import load
from frontage_sim.switches import Program

TINY = """\
title: tiny
seeds: 2
world: {kind: testbed, clients: 2, servers: 3, rate: 1gbit}
transport: {min_rto: 5ms, initial_rto: 20ms}
workload: {load: 0.6, duration: 20ms}
vary:
  scheduler.kind: [fifo, aifo, sp-pifo, pifo]
"""
RACKS = """\
title: racks
seeds: 1
world: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}
workload: {load: 0.5, duration: 5ms, sizes: "uniform:1-100000"}
"""

QUIC = """\
title: quic
seeds: 1
world: {kind: testbed, clients: 2, servers: 3, rate: 1gbit}
transport: {protocol: quic, initial_rtt: 5ms, max_ack_delay: 1ms}
workload: {load: 0.6, duration: 20ms, sizes: "uniform:1-100000"}
vary:
  balancer.policy: [cclb4, hash, cheetah-rr]
"""

SWAP = """\
title: two flows whose RPTs change places
seeds: 1
world:
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
    """Of everything that a run says of the simulated world; `timing.json` is of this one."""
    files = (file for file in folder.rglob("*.*") if file.name != "timing.json" and file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_the_same_bytes_whatever_the_workers(scenario: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    flows = simulate(scenario, one, workers=1)
    assert flows.equals(simulate(scenario, two, workers=2))
    assert digest(one) == digest(two)
    assert set(flows["scheduler.kind"]) == {"fifo", "aifo", "sp-pifo", "pifo"}
    assert (flows["end"] > flows["start"]).all()
    assert flows.filter(pl.col("seed") == 1)["size"].to_list() != flows.filter(pl.col("seed") == 2)["size"].to_list()


def test_what_is_finished_is_not_run_again(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    simulate(scenario, out)
    made = runs(load(scenario), scenario)
    kept = out / made[0].name / "timing.json"
    before = kept.stat().st_mtime_ns
    # As if it had been interrupted: one run is half there, another is of a scenario that was changed since.
    (out / made[1].name).rename(out / f"{made[1].name}.part")
    (out / made[2].name / "resolved.sha256").write_text("of something else")
    assert simulate(scenario, out).height > 0
    assert kept.stat().st_mtime_ns == before
    assert (out / made[1].name / "flows.csv").exists()
    assert not (out / f"{made[1].name}.part").exists()


def test_what_another_scenario_has_simulated_is_taken_from_there(scenario: Path, tmp_path: Path) -> None:
    simulate(scenario, tmp_path / "finished" / "one")
    alone = tmp_path / "alone.yaml"
    alone.write_text(
        TINY.replace("[fifo, aifo, sp-pifo, pifo]", "[aifo]").replace("scheduler.kind:", "workload.load: [0.6]\n  scheduler.kind:")
    )
    every = runs(load(alone), alone)
    never = tmp_path / "never"
    never.write_bytes(simulator().read_bytes())  # not executable: the same program, which cannot run
    run_all(every, [compiled()] * len(every), never, tmp_path / "out", tmp_path / "finished")
    ours, theirs = tmp_path / "out" / every[0].name, tmp_path / "finished" / "one" / "scheduler.kind=aifo,seed=1"
    assert digest(ours) == digest(theirs)
    assert (ours / "timing.json").read_bytes() == (theirs / "timing.json").read_bytes()


def test_quic_finds_its_servers_by_their_ids(tmp_path: Path) -> None:
    file = tmp_path / "quic.yaml"
    file.write_text(QUIC)
    flows = simulate(file, tmp_path / "out")
    every = runs(load(file), file)
    for run, summary in zip(every, summaries(every, tmp_path / "out"), strict=True):
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
        # One by the policy for each flow, then by the connection id that the server chose; loads come with each answer.
        assert set(counted) == {assigned, "retrieved-cid", "insight"}
        assert counted[assigned] == begun < counted["retrieved-cid"]


def test_the_shorter_rpt_that_a_scenario_gives_is_served_first(tmp_path: Path) -> None:
    file = tmp_path / "swap.yaml"
    file.write_text(SWAP)
    received = simulate(file, tmp_path / "out", table="throughput")
    at = {(row["time"], row["flow"]): row["received"] for row in received.iter_rows(named=True)}
    half, settled, end = 200_000_000, 300_000_000, 400_000_000
    # 180 Mbit/s and what they leave of 300.
    assert at[half, 1] > 1.3 * at[half, 2]
    assert at[end, 2] - at[settled, 2] > 1.3 * (at[end, 1] - at[settled, 1])


def test_flows_between_racks_end(tmp_path: Path) -> None:
    file = tmp_path / "racks.yaml"
    file.write_text(RACKS)
    flows = simulate(file, tmp_path / "out")
    assert flows.height > 100
    assert (flows["client"] != flows["server"]).all()


def test_incast_comes_from_as_many_servers_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "incast.yaml"
    file.write_text(RACKS.replace("workload: {", "workload: {incast: 3, "))
    flows = simulate(file, tmp_path / "out")
    bursts = flows.group_by("client", "start").agg(pl.len(), pl.col("server").n_unique().alias("servers"))
    assert bursts.height > 30
    assert bursts.select((pl.col("len") == 3).all(), (pl.col("servers") == 3).all()).row(0) == (True, True)


def test_what_frames_take_besides_delays_flows(tmp_path: Path) -> None:
    times = []
    for overhead in ("0B", "1000B"):
        file = tmp_path / f"racks-{overhead}.yaml"
        file.write_text(RACKS.replace("hosts: 2", f"hosts: 2, nics: true, overhead: {overhead}"))
        times.append(simulate(file, tmp_path / overhead).select(pl.col("end") - pl.col("start")).sum().item())
    assert times[1] > 1.5 * times[0]


def test_what_the_simulator_refuses_is_said(scenario: Path, tmp_path: Path) -> None:
    (one, *_) = runs(load(scenario), scenario)
    broken = Program(compiled().p4info, scenario)
    with pytest.raises(SimulationError, match=r"seed=1: .*programs.frontage"):
        run_all([one], [broken], simulator(), tmp_path / "out", tmp_path)
    assert not (tmp_path / "out" / one.name).exists()


def test_servers_have_their_weights(tmp_path: Path) -> None:
    file = tmp_path / "weights.yaml"
    file.write_text(
        "title: weights\nseeds: 1\nworld: {kind: testbed, clients: 1, servers: 4, rate: 1gbit}\n"
        "balancer: {policy: cheetah-rr, weights: [3, 1]}\nworkload: {duration: 20ms, sizes: 'uniform:1-10000'}\n"
    )
    flows = simulate(file, tmp_path / "out")
    rounds = flows.height // 8  # in each round every server has as many flows as its weight
    first = flows.sort("start").head(8 * rounds)
    assert dict(first["server"].value_counts().iter_rows()) == {"s1": 3 * rounds, "s2": rounds, "s3": 3 * rounds, "s4": rounds}

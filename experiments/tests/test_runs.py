# SPDX-License-Identifier: Apache-2.0
"""Complete runs with the real simulator and the compiled P4 program."""

import hashlib
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from frontage.p4.reasons import outcomes
from frontage_sim import plan_sweep, sweep
from frontage_sim.jobs import SimulationError
from frontage_sim.packets import simulator

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
    flows = sweep(scenario, one, workers=1).table()
    assert flows.equals(sweep(scenario, two, workers=2).table())
    assert digest(one) == digest(two)
    assert set(flows["scheduler.kind"]) == {"fifo", "aifo", "sp-pifo", "pifo"}
    assert (flows["end"] > flows["start"]).all()
    assert flows.filter(pl.col("seed") == 1)["size"].to_list() != flows.filter(pl.col("seed") == 2)["size"].to_list()


def test_finished_runs_are_kept(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(scenario, out)
    names = list(plan_sweep(scenario).labels)
    kept = out / names[0] / "timing.json"
    before = kept.stat().st_mtime_ns
    # The state after an interruption: one run is incomplete, another belongs to an older scenario.
    (out / names[1]).rename(out / f"{names[1]}.part")
    (out / names[2] / "inputs.sha256").write_text("another digest")
    assert sweep(scenario, out).table().height > 0
    assert kept.stat().st_mtime_ns == before
    assert (out / names[1] / "flows.parquet").exists()
    assert not (out / f"{names[1]}.part").exists()


def test_runs_of_other_scenarios_are_reused(scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontage_sim.RUNS", tmp_path / "finished")
    original = sweep(scenario, tmp_path / "finished" / "one")
    alone = tmp_path / "alone.yaml"
    alone.write_text(
        TINY.replace("[fifo, aifo, sp-pifo, pifo]", "[aifo]").replace("scheduler.kind:", "workload.load: [0.6]\n  scheduler.kind:")
    )
    not_executable = tmp_path / "simulator"
    not_executable.write_bytes(simulator().read_bytes())  # the same digest, but running it fails
    monkeypatch.setenv("FRONTAGE_SIMULATOR", str(not_executable))
    copy = sweep(alone, tmp_path / "out")
    folder, twin = copy.folder / next(iter(copy.plan.labels)), original.folder / "scheduler.kind=aifo,seed=1"
    assert digest(folder) == digest(twin)
    assert (folder / "timing.json").read_bytes() == (twin / "timing.json").read_bytes()
    assert copy.core_seconds().items() <= original.core_seconds().items()


def test_quic_servers_are_found_by_connection_id(tmp_path: Path) -> None:
    file = tmp_path / "quic.yaml"
    file.write_text(QUIC)
    results = sweep(file, tmp_path / "out")
    flows = results.table()
    for labels, summary in zip(results.plan.labels.values(), results.summaries(), strict=True):
        begun = summary["flows"]["begun"]
        assert (
            begun == summary["flows"]["ended"] == flows.filter(pl.col("balancer.policy") == labels["balancer.policy"]).height > 20
        )
        counted: Counter[str] = Counter()
        for balancer in ("lb1", "lb2"):
            for index, packets in summary["counters"][balancer]["FrontageIngress.outcomes"].items():
                counted[outcomes()[int(index)].name] += packets
        assigned = "assigned-" + labels["balancer.policy"].removeprefix("cheetah-")
        # The policy assigns each flow once; then its packets are matched by connection id, and each response reports loads.
        assert set(counted) == {assigned, "retrieved-cid", "insight"}
        assert counted[assigned] == begun < counted["retrieved-cid"]


def test_flow_with_shorter_rpt_is_served_first(tmp_path: Path) -> None:
    file = tmp_path / "swap.yaml"
    file.write_text(SWAP)
    received = sweep(file, tmp_path / "out").table("throughput")
    received_at = {(row["time"], row["flow"]): row["received"] for row in received.iter_rows(named=True)}
    half, settled, end = 200_000_000, 300_000_000, 400_000_000
    # The preferred flow gets 180 Mbit/s, the other the rest of 300.
    assert received_at[half, 1] > 1.3 * received_at[half, 2]
    assert received_at[end, 2] - received_at[settled, 2] > 1.3 * (received_at[end, 1] - received_at[settled, 1])


def test_flows_between_racks_complete(tmp_path: Path) -> None:
    file = tmp_path / "racks.yaml"
    file.write_text(RACKS)
    flows = sweep(file, tmp_path / "out").table()
    assert flows.height > 100
    assert (flows["client"] != flows["server"]).all()


def test_incast_uses_requested_number_of_servers(tmp_path: Path) -> None:
    file = tmp_path / "incast.yaml"
    file.write_text(RACKS.replace("workload: {", "workload: {incast: 3, "))
    flows = sweep(file, tmp_path / "out").table()
    bursts = flows.group_by("client", "start").agg(pl.len(), pl.col("server").n_unique().alias("servers"))
    assert bursts.height > 30
    assert bursts.select((pl.col("len") == 3).all(), (pl.col("servers") == 3).all()).row(0) == (True, True)


def test_frame_overhead_delays_flows(tmp_path: Path) -> None:
    times = []
    for overhead in ("0B", "1000B"):
        file = tmp_path / f"racks-{overhead}.yaml"
        file.write_text(RACKS.replace("hosts: 2", f"hosts: 2, nics: true, overhead: {overhead}"))
        times.append(sweep(file, tmp_path / overhead).table().select(pl.col("end") - pl.col("start")).sum().item())
    assert times[1] > 1.5 * times[0]


def test_failure_is_reported_after_other_runs_have_finished(tmp_path: Path) -> None:
    file = tmp_path / "failing.yaml"
    file.write_text(RACKS.replace("seeds: 1", "seeds: 2") + "vary: {record: [0ms, 1ms]}\n")
    with pytest.raises(SimulationError) as failed:
        sweep(file, tmp_path / "out", workers=1)
    assert str(failed.value).startswith("2 of 4 runs failed:\n")
    for seed in (1, 2):
        assert re.search(rf"^record=0ms,seed={seed}: .*\s+Caused by:\s+record.queues: must be", str(failed.value), re.MULTILINE)
        assert (tmp_path / "out" / f"record=1ms,seed={seed}" / "queues.parquet").exists()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["record=1ms,seed=1", "record=1ms,seed=2"]


def test_flows_follow_server_weights(tmp_path: Path) -> None:
    file = tmp_path / "weights.yaml"
    file.write_text(
        "title: weights\nseeds: 1\ntopology: {kind: testbed, clients: 1, servers: 4, rate: 1gbit}\n"
        "balancer: {policy: cheetah-rr, weights: [3, 1]}\nworkload: {duration: 20ms, sizes: 'uniform:1-10000'}\n"
    )
    flows = sweep(file, tmp_path / "out").table()
    rounds = flows.height // 8  # each round assigns as many flows to a server as its weight
    first = flows.sort("start").head(8 * rounds)
    assert dict(first["server"].value_counts().iter_rows()) == {"s1": 3 * rounds, "s2": rounds, "s3": 3 * rounds, "s4": rounds}

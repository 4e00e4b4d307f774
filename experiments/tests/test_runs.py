"""Whole runs, with the real simulator and the compiled program."""

import hashlib
from pathlib import Path

import polars as pl
import pytest

from frontage_sim import compiled, simulate, simulator
from frontage_sim.grid import runs
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


def test_flows_between_racks_end(tmp_path: Path) -> None:
    file = tmp_path / "racks.yaml"
    file.write_text(RACKS)
    flows = simulate(file, tmp_path / "out")
    assert flows.height > 100
    assert (flows["client"] != flows["server"]).all()


def test_what_the_simulator_refuses_is_said(scenario: Path, tmp_path: Path) -> None:
    (one, *_) = runs(load(scenario), scenario)
    broken = Program(compiled().p4info, scenario)
    with pytest.raises(SimulationError, match=r"seed=1: .*programs.frontage"):
        run_all([one], broken, simulator(), tmp_path / "out")
    assert not (tmp_path / "out" / one.name).exists()

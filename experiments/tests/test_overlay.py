# SPDX-License-Identifier: Apache-2.0
"""Modified P4 of a scenario: compilation and rejection."""

from pathlib import Path

import pytest

from frontage.config import ConfigError
from frontage_sim import sweep
from frontage_sim.grid import runs
from frontage_sim.packets import program, shipped_program
from frontage_sim.paths import REPOSITORY
from frontage_sim.resolve import resolve
from frontage_sim.scenario import load
from frontage_sim.switches import Program

TREE = "control/tree.p4"
OVERLAYS = sorted((REPOSITORY / "experiments").glob("*/p4/*"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


def build_program(file: Path, section: str) -> Program:
    file.write_text(f"title: mine\nseeds: 1\nprogram: {section}\n")
    (run,) = runs(load(file), file)
    return program(run, file)


def write_overlay(file: Path, name: str, text: str) -> None:
    path = file.parent / "p4" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_scenario_without_overlay_uses_project_program(file: Path) -> None:
    assert build_program(file, "{}") == shipped_program()


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda folder: folder.name)
def test_overlays_of_experiments_compile_to_other_programs(file: Path, folder: Path) -> None:
    modified = build_program(file, f"{{overlay: {folder}}}")
    assert modified.json_file.read_bytes() != shipped_program().json_file.read_bytes()
    before = modified.json_file.stat().st_mtime_ns
    assert build_program(file, f"{{overlay: {folder}}}") == modified
    assert modified.json_file.stat().st_mtime_ns == before  # cached


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda folder: folder.name)
def test_overlays_of_experiments_take_the_entries_of_the_controller(file: Path, folder: Path) -> None:
    file.write_text(f"title: mine\nseeds: 1\ntopology: {{kind: testbed, servers: 17}}\nprogram: {{overlay: {folder}}}\n")
    (run,) = runs(load(file), file)
    assert resolve(run, program(run, file))["switches"]


def test_macro_changes_program(file: Path) -> None:
    programs = [build_program(file, f"{{define: {{CPU_PORT: {port}}}}}").json_file.read_bytes() for port in (509, 510)]
    assert programs[0] != programs[1]


def test_modified_program_runs(file: Path, tmp_path: Path) -> None:
    """A balancer that never uses the server of the tree assigns every flow by hash."""
    assign = (REPOSITORY / "p4src" / "control" / "assign.p4").read_text()
    use_tree = "            select_best();\n"
    assert use_tree in assign
    write_overlay(file, "control/assign.p4", assign.replace(use_tree, ""))
    topology = (
        'topology: {kind: testbed, clients: 2, servers: 4, rate: 1gbit}\nworkload: {duration: 20ms, sizes: "uniform:1-10000"}\n'
    )
    variants = "{hash: {balancer.policy: hash}, edited: {program.overlay: p4}, shipped: {}}"
    file.write_text(f"title: mine\nseeds: 1\n{topology}vary:\n  balancer: {variants}\n")
    flows = sweep(file, tmp_path / "out").table()
    servers = {name: frame.sort("id")["server"].to_list() for (name,), frame in flows.group_by("balancer")}
    assert servers["edited"] == servers["hash"] != servers["shipped"]


def test_all_bits_of_the_remaining_time_are_the_shipped_program(file: Path, tmp_path: Path) -> None:
    """The study of the code's bits modifies the rank that the scheduler uses, and nothing else."""
    topology = (
        "topology: {kind: testbed, clients: 2, servers: 2, server_share: 2, rate: 1gbit, queue: 20}\ntransport: {protocol: quic}\n"
    )
    workload = 'scheduler: {kind: aifo}\nworkload: {duration: 50ms, load: 0.9, sizes: "uniform:1-100000"}\n'
    coarse = REPOSITORY / "experiments" / "studies" / "p4" / "coarse-rank"
    bits = ", ".join(f"{n} bits: {{program: {{overlay: {coarse}, define: {{RPT_BITS: {n}}}}}}}" for n in (1, 8))
    file.write_text(f"title: mine\nseeds: 1\n{topology}{workload}vary:\n  rank: {{{bits}, shipped: {{}}}}\n")
    flows = sweep(file, tmp_path / "out").table()
    ends = {name: frame.sort("id")["end"].to_list() for (name,), frame in flows.group_by("rank")}
    assert ends["8 bits"] == ends["shipped"] != ends["1 bits"]


def test_compile_error_has_file_and_line(file: Path) -> None:
    write_overlay(file, TREE, "control Tournament(inout tree_t tree) {\n    apply {\n        tree.best = tree.worst;\n    }\n}\n")
    with pytest.raises(
        ConfigError, match=r"program\.overlay: the P4 code does not compile:\ncontrol/tree\.p4:3:\d+: error: .*worst"
    ):
        build_program(file, "{overlay: p4}")


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ("{overlay: p4}", 'control/treee.p4" does not replace any file: give it the path of a file in p4src'),
        ("{overlay: nowhere}", 'nowhere" is not a folder with P4 files: give one'),
        ("{define: {1X: 2}}", '3:19: program.define: invalid value "1X": give macros for the compiler'),
        ("{define: {X: much}}", 'program.define: invalid integer "much": give macros for the compiler'),
    ],
)
def test_invalid_program_is_rejected_with_field_and_fix(file: Path, section: str, complaint: str) -> None:
    write_overlay(file, "control/treee.p4", "")
    with pytest.raises(ConfigError) as rejected:
        build_program(file, section)
    assert str(rejected.value).startswith(str(file))
    assert complaint in str(rejected.value)

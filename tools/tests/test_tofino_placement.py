# SPDX-License-Identifier: Apache-2.0
"""The reports of the open back end for Tofino are read, and docs/tofino.md has p4src/tna/placement.json."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tofino import STAGES, backend, page, placement, resources

EVENTS: list[dict[str, Any]] = [
    {"event_log_schema_version": "1.2.0"},
    {"i": 1, "mgr": 0, "n": "InstructionSelection", "s": 1, "t": 2},
    {"i": 4, "m": "a warning", "t": 2, "si": []},
    {"i": 1, "mgr": 1, "n": "CheckParserMultiWrite", "s": 4, "t": 3},
    {"i": 3, "m": "assigned\ntwice", "t": 3, "si": [{"c": 1, "f": 1, "l": 238, "p": "extract"}]},
    {"i": 3, "m": "a consequence", "t": 3, "si": []},
    {"i": 1, "mgr": 1, "n": "LowerParser", "s": 5, "t": 4},
    {"i": 0, "file_ids": ["p4src/a.p4", "p4src/tna/../include/b.p4"], "manager_ids": []},
]


def test_first_error_names_its_pass_and_position() -> None:
    assert backend.refusal(EVENTS, "") == backend.Refusal("CheckParserMultiWrite", "p4src/include/b.p4:238: assigned twice")


def test_error_of_the_back_end_itself_names_the_last_pass() -> None:
    output = "a warning\nCompiler Bug: no containers\n1 error\n"
    assert backend.refusal(EVENTS[:2], backend.message(output)) == backend.Refusal(
        "InstructionSelection", "Compiler Bug: no containers"
    )


def test_log_that_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    (tmp_path / "events.json").write_text('{"i":1,"mgr":0,"n":"A","s":0,"t":0}\n{"i":1,"mg')
    assert [event["n"] for event in backend.events(tmp_path)] == ["A"]


def test_endless_run_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(backend, "CPU_LIMIT", 1)
    refusal = backend.run([sys.executable, "-c", "while True: pass"], "tofino1", tmp_path)
    assert refusal == backend.Refusal("(none)", "no result within 1 seconds of processor time")


def test_unknown_command_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4C_TOFINO", "no-such-compiler -O2")
    with pytest.raises(SystemExit, match="P4C_TOFINO=no-such-compiler: not a program: correct or unset it"):
        backend.compiler()


def test_unset_variable_means_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("P4C_TOFINO", raising=False)
    assert backend.compiler() is None


def stage(**elements: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a stage of a chip with two units in each dimension, of which it uses these elements."""
    return {
        unit.group: {unit.elements: elements.get(unit.group, []), **dict.fromkeys(unit.capacity, 2)}
        for unit in resources.UNITS.values()
    }


def used_by(name: str) -> dict[str, Any]:
    return {"row": 0, "usages": [{"used_by": name, "used_for": "match_entry_ram"}]}


STAGE_0 = stage(
    rams=[used_by("FrontageIngress.vip.vips"), used_by("FrontageIngress.scheduler.aifo.window.ranks")],
    hash_bits=[{"hash_bit": 1, "used_by_table": "FrontageIngress.vip.vips", "usages": [{"type": "dist_bit", "value": 0}]}],
    gateways=[used_by("tbl_cclb470-gateway"), used_by("cond-7")],
    logical_tables=[{"id": 0, "table_name": "FrontageIngress.drops"}],
)
STAGE_1 = stage(
    rams=[{"row": 1, "usages": [{"used_by": "FrontageIngress.vip.vips"}, {"used_by": "FrontageEgress.ecn.marks"}]}],
    meter_alus=[used_by("FrontageIngress.vip.register")],
)


def test_units_are_counted_by_kind() -> None:
    units = resources.units({"nStages": 3, "mau_stages": [STAGE_0, STAGE_1]})
    assert units["SRAM"] == {"used": 3, "of": 12}
    assert units["stateful ALU"] == {"used": 1, "of": 6}


def test_units_are_counted_by_control() -> None:
    controls = resources.controls([STAGE_0, STAGE_1])
    used = {control: {kind: count for kind, count in counts.items() if count} for control, counts in controls.items()}
    assert used == {
        "FrontageEgress.ecn": {"SRAM": 1},
        "FrontageIngress": {"logical table": 1},
        "FrontageIngress.scheduler": {"SRAM": 1},
        "FrontageIngress.vip": {"SRAM": 2, "hash bits": 1, "stateful ALU": 1},
        "cclb4.p4": {"gateway": 1},
        resources.STATEMENTS: {"gateway": 1},
    }


def test_stages_are_those_of_the_assembly() -> None:
    assembly = "stage 0 ingress:\n  exact_match a 0:\nstage 2 ingress:\nstage 1 egress:\n"
    assert resources.stages(assembly) == {"ingress": 3, "egress": 2}


def test_gresses_of_several_pipes_have_names_of_their_own(tmp_path: Path) -> None:
    phv_containers = {"normal": [{"width": 8, "units": 64}]}
    for pipe, mau_stage in (("edge", STAGE_0), ("core", STAGE_1)):
        logs = tmp_path / pipe / "logs"
        logs.mkdir(parents=True)
        (tmp_path / pipe / "program.bfa").write_text("stage 0 ingress:\nstage 1 egress:\n")
        found = {"phv_containers": phv_containers, "mau": {"nStages": 3, "mau_stages": [mau_stage]}}
        (logs / "resources.json").write_text(json.dumps({"resources": found}))
        (logs / "phv.json").write_text(json.dumps({"containers": [{"gress": "ingress", "container_type": "normal"}]}))
    usage = resources.usage(tmp_path)
    assert usage["stages"] == {"core.ingress": 1, "core.egress": 2, "edge.ingress": 1, "edge.egress": 2}
    assert usage["containers"]["edge.ingress"] == {"normal": 1}
    assert usage["containers"]["chip"] == {"normal": 64}
    assert usage["units"]["SRAM"] == {"used": 3, "of": 24}


def test_result_with_more_stages_than_the_chip_is_a_refusal() -> None:
    assert placement.fitting("tofino2core", {"stages": {"ingress": 21, "egress": 20}}) == {
        "pass": "TablePlacement",
        "error": "the result has 21 stages in ingress, but the chip has 20",
    }
    fits = {"stages": {"ingress": 20, "egress": 20}}
    assert placement.fitting("tofino2core", fits) == fits


def test_containers_are_counted_by_gress_and_type() -> None:
    containers = [
        {"gress": "ingress", "container_type": "normal", "bit_width": 8},
        {"gress": "ingress", "container_type": "normal", "bit_width": 32},
        {"gress": "egress", "container_type": "tagalong", "bit_width": 32},
    ]
    available = {"normal": [{"width": 8, "units": 64}, {"width": 32, "units": 64}], "tagalong": [{"width": 32, "units": 32}]}
    assert resources.used_containers(containers, available) == {
        "ingress": {"normal": 2, "tagalong": 0},
        "egress": {"normal": 0, "tagalong": 1},
        "chip": {"normal": 128, "tagalong": 32},
    }


def test_page_describes_placed_and_refused_profiles() -> None:
    placed = {
        "stages": {"ingress": 12, "egress": 9},
        "containers": {"ingress": {"normal": 20}, "egress": {"normal": 10}, "chip": {"normal": 224}},
        "units": resources.units({"nStages": 3, "mau_stages": [STAGE_0, STAGE_1]}),
        "controls": resources.controls([STAGE_0, STAGE_1]),
    }
    lines = placement.block({"tofino1": placed, "tofino2": {"pass": "PHV Analysis", "error": "a | b"}})
    assert lines[2] == "| `tofino1` | placed; stages of 12: ingress 12, egress 9 |"
    assert lines[3] == "| `tofino2` | refused in the pass PHV Analysis: a \\| b |"
    assert "| `FrontageIngress.vip` | 2 | 0 | 0 | 1 | 0 | 1 | 0 | 0 | 0 |" in lines
    assert "| all | 3 | 0 | 0 | 1 | 0 | 1 | 2 | 1 | 0 |" in lines


def test_page_has_the_placement() -> None:
    profiles = json.loads(placement.GOLDEN.read_text())
    assert list(profiles) == list(STAGES)
    assert "\n".join(placement.block(profiles)) in page.PAGE.read_text()

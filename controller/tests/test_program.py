# SPDX-License-Identifier: Apache-2.0
"""The controller's knowledge of the P4 program, compared with the program's source and P4Info."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import EXAMPLE, PROGRAM, ROOT
from frontage import limits
from frontage.config import load
from frontage.p4 import reasons
from frontage.p4.entries import Action, Key
from frontage.p4.p4info import Pipeline, PipelineError, Schema
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import gate
from frontage.state.desired import BLOCKS, TABLES, desired

SOURCE = ROOT / "p4src"


@pytest.fixture(scope="module")
def schema() -> Schema:
    file = PROGRAM / "frontage.p4info.txtpb"
    if not file.exists():
        pytest.skip(f"no compiled program in {PROGRAM}: compile p4src/v1model/frontage.p4")
    return Schema.load(file)


def test_limits_equal_the_sizes_of_the_program() -> None:
    text = (SOURCE / "include" / "size.p4").read_text()
    sizes = {name: int(value) for name, value in re.findall(r"^#define (\w+) (\d+)$", text, re.MULTILINE)}
    assert sizes["VIPS"] == limits.MAX_VIPS
    assert sizes["SERVERS"] == limits.MAX_SERVERS
    assert sizes["TREE_SLOTS"] == limits.TREE_SLOTS
    assert sizes["TREE_LEVELS"] == limits.MAX_TREE_DEPTH
    assert sizes["POOL_ENTRIES"] == limits.POOL_ENTRIES
    assert sizes["SCORES"] == limits.MAX_CLASSES * limits.SCORE_CODES
    assert sizes["MAGLEV_SLOTS"] == limits.MAGLEV_SLOTS
    assert sizes["NEIGHBORS"] == limits.MAX_NEIGHBORS
    assert limits.MAX_ROUTES == sizes["IPV4_ROUTES"] == sizes["IPV6_ROUTES"]
    assert sizes["NEXT_HOPS"] == limits.MAX_NEXT_HOPS
    assert sizes["NEXT_HOP_GROUPS"] == limits.MAX_GROUPS
    assert sizes["GROUP_MEMBERS"] == limits.MAX_GROUP_MEMBERS
    assert sizes["GROUP_SIZE"] == limits.MAX_GROUP_SIZE
    assert sizes["AIFO_LIMITS"] == sizes["PORTS"] * (limits.AIFO_WINDOW + 1)
    assert sizes["RANK_BANDS"] == limits.RANK_BANDS
    assert sizes["SITES"] == limits.MAX_SITE + 1
    assert sizes["DISPATCHER_SLOTS"] == limits.DISPATCHER_SLOTS
    assert sizes["TUNNEL_ENDPOINTS"] == limits.MAX_TUNNEL_ENDPOINTS
    assert sizes["DEMAND_CELLS"] == limits.DEMAND_CELLS
    assert sizes["LIMITED_PREFIXES"] == limits.MAX_LIMITED_PREFIXES
    assert sizes["LIMIT_COUNTERS"] == 4 * limits.MAX_VIPS
    assert sizes["REAL_SERVERS"] == limits.MAX_REAL_SERVERS
    assert sizes["REAL_SERVER_SENDERS"] == limits.MAX_SENDERS
    window = (SOURCE / "v1model" / "window.p4").read_text()
    assert len(re.findall(r"WindowSlot\(\d+\)", window)) == limits.AIFO_WINDOW
    assert f"#define WORKER_SESSION {limits.WORKER_SESSION}\n" in (SOURCE / "v1model" / "worker.p4").read_text()
    assert f"#define WORKER_SESSION {limits.WORKER_SESSION}\n" in (SOURCE / "tna" / "worker.p4").read_text()
    assert f"#define SAMPLE_SESSION {limits.SAMPLE_SESSION}\n" in (SOURCE / "v1model" / "samples.p4").read_text()


def test_reasons_are_read_from_the_program() -> None:
    drops = reasons.drops()
    text = (SOURCE / "include" / "drop.p4").read_text()
    assert len(drops) == len(re.findall(r"^#define DROP_\w+ \d+ //", text, re.MULTILINE)) - 1
    assert drops[12].name == "no-route"
    assert reasons.outcomes()[7].name == "retrieved-cookie"
    assert set(reasons.claims()) == {0, 1}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.__name__)
def test_block_has_the_name_of_its_control(block: object) -> None:
    name = str(block.__name__).rpartition(".")[2]  # type: ignore[attr-defined]
    folders = (SOURCE / "control", SOURCE / "tna" / "folded")
    assert any((folder / f"{name}.p4").exists() for folder in folders)


def test_every_table_of_the_program_belongs_to_a_block(schema: Schema) -> None:
    only_in_several_pipes = set(gate.TABLES)
    assert set(schema.tables) == set(TABLES) - only_in_several_pipes


def test_entries_are_equal_after_encoding_and_decoding(schema: Schema) -> None:
    config = load(EXAMPLE)
    decode = schema.decoder()
    for key, action in desired(config, allocate(config, Installed({}))).items():
        assert decode(schema.encode(key, action)) == (key, action)


def test_program_of_another_version_is_rejected(schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"no table vip\.vip5: use a controller and a P4 program of the same version"):
        schema.encode(Key("vip.vip5", (1,)), None)
    with pytest.raises(PipelineError, match="no action set_vip of 2 parameters"):
        schema.encode(Key("vip.vip4", (1, 6, 2)), Action("set_vip", (1, 2)))
    with pytest.raises(PipelineError, match="has 3 match fields, not 1"):
        schema.encode(Key("vip.vip4", (1,)), None)
    (tmp_path / "bad.txtpb").write_text("tables { nonsense: 1 }")
    with pytest.raises(PipelineError, match="invalid P4Info"):
        Schema.load(tmp_path / "bad.txtpb")
    with pytest.raises(PipelineError, match="cannot be read"):
        Pipeline.load(PROGRAM / "frontage.p4info.txtpb", tmp_path / "none.json")

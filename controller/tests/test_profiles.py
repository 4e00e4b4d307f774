# SPDX-License-Identifier: Apache-2.0
"""The controller with the profile for Tofino 1, which leaves out features together with their tables and counters."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

import softswitch
from conftest import EXAMPLE, QUIC_EXAMPLE, ROOT
from frontage.config import load
from frontage.p4.p4info import Schema
from frontage.service.status import read_status
from frontage.state.errors import ReconcileError
from frontage.state.offline import contents
from live import LIMIT, connected, installed, running

pytestmark = pytest.mark.skipif(os.environ.get("TARGET") == "bmv2", reason="BMv2 does not run programs for Tofino")


@pytest.fixture
def tofino1_file(config_file: Path) -> Path:
    """The example configuration with the profile as the switch's program."""
    program = softswitch.compile(ROOT / "p4src" / "tna" / "tofino1.p4")
    assert program.p4info is not None
    p4info, json = config_file.with_name("tofino1.p4info.txtpb"), config_file.with_name("tofino1.json")
    p4info.write_text(program.p4info)
    json.write_text(program.json)
    lines = config_file.read_text().splitlines(keepends=True)
    values = {"p4info:": p4info, "json:": json}
    changed = [f"    {key} {values[key]}\n" if (key := line.strip().split(" ")[0]) in values else line for line in lines]
    config_file.write_text("".join(changed))
    return config_file


async def test_profile_needs_no_tables_of_other_features(tofino1_file: Path) -> None:
    async with running(load(tofino1_file)) as controller:
        await installed(controller)
        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert status["difference"]["entries"] > 1000
        assert not any(vip["up"]["packets"] for vip in status["vips"])


async def test_profile_without_second_hop_drains_servers(tofino1_file: Path) -> None:
    config = load(tofino1_file)
    first, *others = config.servers
    async with asyncio.timeout(LIMIT), running(config) as controller:
        await controller.installed()
        await controller.apply(config.model_copy(update={"servers": (first.draining(), *others)}))
        await installed(controller)


RACK = "    name: rack\n"
AHEAD = "    look_ahead: 65536"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (RACK, f"{RACK}    scheduler: {{kind: sp-pifo}}\n", "ports[1].scheduler: the P4 program does not have schedulers"),
        (RACK, f"{RACK}    ecn_threshold: 5\n", "ports[1].ecn_threshold: the P4 program does not have ECN marking"),
        (AHEAD, f"    limits: {{new_connections: 5}}\n{AHEAD}", "vips[0].limits: the P4 program does not have limits"),
        (
            AHEAD,
            f"    syn_defence: {{}}\n{AHEAD}",
            "vips[0].syn_defence: the P4 program does not have the defence against SYN floods",
        ),
        (
            "idle_timeout: 120",
            "idle_timeout: 60",
            "fallback.idle_timeout: the P4 program does not have a configurable timeout of connections",
        ),
    ],
)
async def test_features_that_the_profile_leaves_out_are_refused(tofino1_file: Path, old: str, new: str, error: str) -> None:
    tofino1_file.write_text(tofino1_file.read_text().replace(old, new, 1))
    async with asyncio.timeout(LIMIT), running(load(tofino1_file)) as controller:
        with pytest.raises(ReconcileError, match=f"{re.escape(error)}: remove the feature or setting, or use a program"):
            await controller.installed()


def schema_of(profile: str) -> Schema:
    program = softswitch.compile(ROOT / "p4src" / "tna" / f"{profile}.p4")
    assert program.p4info is not None
    return Schema(text_format.Parse(program.p4info, p4i.P4Info()))


def test_remote_servers_are_refused_for_tofino2() -> None:
    config = load(EXAMPLE.with_name("remote-servers.yaml"))
    with pytest.raises(ReconcileError, match=r"^servers\[1\]\.encapsulation: the P4 program does not have remote servers: remove"):
        contents(config, schema_of("tofino2"))


def test_quic_services_are_refused() -> None:
    """The simulator and the benchmarks refuse them, too."""
    schema = schema_of("tofino1")
    with pytest.raises(
        ReconcileError, match=r"^vips\[0\]\.protocol: the P4 program does not have QUIC services: remove the feature"
    ):
        contents(load(QUIC_EXAMPLE), schema)

# SPDX-License-Identifier: Apache-2.0
"""The controller with the profiles for Tofino 1, which leave out features together with their tables and counters."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

import softswitch
from conftest import EXAMPLE, QUIC_EXAMPLE, ROOT
from frontage.config import edit, load
from frontage.cookie import CookieKey
from frontage.p4.cells import cell
from frontage.p4.entries import Key, State
from frontage.p4.p4info import Schema
from frontage.service.status import read_status
from frontage.state.blocks import unseal
from frontage.state.errors import ReconcileError
from frontage.state.offline import contents
from frontage.state.reconcile import plan
from live import LIMIT, connected, edited, installed, running

pytestmark = pytest.mark.skipif(os.environ.get("TARGET") == "bmv2", reason="BMv2 does not run programs for Tofino")


@pytest.fixture
def tofino1_file(config_file: Path) -> Path:
    """The example configuration with the profile as the switch's program."""
    return with_profile(config_file, "tofino1")


@pytest.fixture
def tofino1quic_file(quic_file: Path) -> Path:
    """The example with QUIC services, with the profile as the switch's program."""
    quic_file.write_text(quic_file.read_text().replace("policy: cheetah-rr ", "policy: hash "))
    return with_profile(quic_file, "tofino1quic")


def with_profile(config_file: Path, profile: str) -> Path:
    """Compile a profile, and write it to a configuration as the switch's program."""
    program = softswitch.compile(ROOT / "p4src" / "tna" / f"{profile}.p4")
    assert program.p4info is not None
    p4info, json = config_file.with_name(f"{profile}.p4info.txtpb"), config_file.with_name(f"{profile}.json")
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


def words(state: State, epoch: int) -> dict[str, list[int]]:
    """Return the words of the cipher's registers for a key of this epoch, by register."""
    found: dict[str, list[int]] = {}
    for table in unseal.TABLES[4:]:
        found[table] = [action.params[0] if (action := state.get(Key(table, (epoch << 8 | byte,)))) else 0 for byte in range(256)]
    return found


def expected_words(key: CookieKey) -> dict[str, list[int]]:
    entries = unseal.entries((key,))
    return {table: [entries[Key(table, (key.epoch, byte))].params[0] for byte in range(256)] for table in unseal.TABLES[4:]}


async def test_rotated_key_is_written_to_registers_next_to_the_old_one(tofino1quic_file: Path) -> None:
    async with running(load(tofino1quic_file)) as controller:
        state = await installed(controller)
        for _ in range(3):
            config = edited(tofino1quic_file, lambda text: edit.rotate_key(text, tofino1quic_file.parent))
            kept, newest = config.cookie_keys
            assert words(state, kept.epoch) == expected_words(kept)
            await controller.apply(config)
            state = await installed(controller)
            assert words(state, kept.epoch) == expected_words(kept)
            assert words(state, newest.epoch) == expected_words(newest)
            assert {key.match[0] for key in state if key.table == "round0.byte0"} == {0, 1}


async def test_removed_key_leaves_zeros_in_registers(tofino1quic_file: Path) -> None:
    config = load(tofino1quic_file)
    async with running(edited(tofino1quic_file, lambda text: edit.rotate_key(text, tofino1quic_file.parent))) as controller:
        state = await installed(controller)
        (old,) = config.cookie_keys
        assert any(words(state, 1 - old.epoch)["round1.byte0"])
        await controller.apply(config)
        state = await installed(controller)
        assert words(state, old.epoch) == expected_words(old)
        assert not any(word for table in words(state, 1 - old.epoch).values() for word in table)


async def test_changed_registers_are_repaired(tofino1quic_file: Path) -> None:
    async with running(load(tofino1quic_file)) as controller:
        before = await installed(controller)
        session, pipeline = connected(controller)
        epoch = controller.config.cookie_keys[-1].epoch
        damage = [cell("round1.byte0", epoch << 8 | 7, 1), cell("round2.byte3", (1 - epoch) << 8, 5)]
        await session.write(pipeline.schema, p4r.Update.MODIFY, damage)
        await session.write(pipeline.schema, p4r.Update.DELETE, [(Key("round3.byte1", (epoch << 8 | 255,)), None)])
        found = await plan(session, pipeline.schema, controller.config)
        assert set(found.difference.different) == {damage[0][0]}
        assert set(found.difference.unexpected) == {damage[1][0]}
        assert set(found.difference.missing) == {Key("round3.byte1", (epoch << 8 | 255,))}
        await controller.apply(controller.config)
        assert await installed(controller) == before


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("policy: hash ", "policy: cheetah-rr ", "vips[1].policy: the P4 program does not have the policy cheetah-rr"),
        (
            "    protocol: udp\n    port: 443\n    policy: hash ",
            "    protocol: tcp\n    port: 443\n    policy: hash ",
            "vips[1].protocol: the P4 program does not have TCP services",
        ),
    ],
)
async def test_features_that_the_profile_for_quic_leaves_out_are_refused(
    tofino1quic_file: Path, old: str, new: str, error: str
) -> None:
    text = tofino1quic_file.read_text()
    assert old in text
    tofino1quic_file.write_text(text.replace(old, new, 1))
    async with asyncio.timeout(LIMIT), running(load(tofino1quic_file)) as controller:
        with pytest.raises(ReconcileError, match=f"{re.escape(error)}: remove the feature or setting, or use a program"):
            await controller.installed()


async def test_status_of_profile_for_quic_has_handshakes_only(tofino1quic_file: Path) -> None:
    async with running(load(tofino1quic_file)) as controller:
        await installed(controller)
        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert set(status["handshakes"]) == {"taken", "refused"}

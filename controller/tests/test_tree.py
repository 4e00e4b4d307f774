# SPDX-License-Identifier: Apache-2.0
"""The tournament trees in the switch after the controller's packets: registers, which softswitch can read."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from finsy.proto import p4r

from conftest import Switch
from frontage import limits
from frontage.config import edit, load
from frontage.config.vips import ServerState
from frontage.p4.p4info import to_bytes
from frontage.service.controller import Controller
from frontage.state.allocation import Installed
from frontage.state.reconcile import plan
from live import LIMIT, connected, installed, running

pytestmark = pytest.mark.skipif(os.environ.get("TARGET") == "bmv2", reason="BMv2 does not let registers be read")

FRESH = 0xFFFF


async def registers(controller: Controller, name: str) -> dict[int, int]:
    """Return the non-zero values of a register, by index."""
    session, pipeline = connected(controller)
    ids = {register.preamble.name: register.preamble.id for register in pipeline.schema.p4info.registers}
    request = p4r.ReadRequest(device_id=session.device_id)
    request.entities.add().register_entry.register_id = next(ids[full] for full in ids if full.endswith(name))
    values: dict[int, int] = {}

    def take(entity: p4r.Entity) -> None:
        value = int.from_bytes(entity.register_entry.data.bitstring, "big")
        if value:
            values[entity.register_entry.index.index] = value

    await session._read(request, take)
    return values


async def leaves_of(controller: Controller) -> dict[int, int]:
    """Return headroom (16 bits) over SID (16 bits) of the leaves with headroom, by slot. A leaf also holds the last report."""
    leaves = await registers(controller, "leaf.leaves")
    return {slot: value >> 32 for slot, value in leaves.items() if value >> 48}


async def expect(controller: Controller) -> None:
    """Check that the leaves belong to active servers, and that the root of every tree is one of them."""
    await installed(controller)
    session, pipeline = connected(controller)
    allocation = (await plan(session, pipeline.schema, controller.config)).allocation
    wanted = {allocation.slots[server.sid]: server.sid for server in controller.config.servers if server.active}
    async with asyncio.timeout(LIMIT):
        # Packets are still in flight when a reconciliation ends.
        while True:
            leaves = await leaves_of(controller)
            if {slot: value & FRESH for slot, value in leaves.items()} == wanted:
                break
            await asyncio.sleep(0.05)
    for name, block in allocation.trees.items():
        sids = {server.sid for server in controller.config.servers_by_vip[name] if server.active}
        if block.depth == 0:
            continue
        children = (await registers(controller, f"level{block.depth}.children")).get(block.base >> block.depth, 0)
        # A value is headroom (16 bits) over tie (4 bits) over SID (12 bits).
        roots = {child & 0xFFF for child in (children >> 32, children & 0xFFFFFFFF) if child >> 16}
        assert roots <= sids
        assert bool(roots) == bool(sids)


async def test_leaves_follow_the_servers(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        await expect(controller)
        changes: list[edit.Edit] = [
            lambda text: edit.set_server_state(text, "web2", ServerState.DRAINING),
            lambda text: edit.set_server_state(text, "web2", ServerState.ACTIVE),
            lambda text: edit.add_server(text, name="web5", vip="shop", address="10.0.0.11", port=8081),
            lambda text: edit.remove_server(text, "web2"),
            lambda text: edit.add_server(text, name="web6", vip="shop", address="10.0.0.12", port=8081),
            lambda text: edit.remove_server(text, "web1-v6"),
        ]
        for change in changes:
            await controller.apply(edit.change_file(config_file, change))
            await expect(controller)


async def test_scores_survive_a_restart_of_the_controller(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        await installed(controller)
        session, pipeline = connected(controller)
        found = await plan(session, pipeline.schema, controller.config)
        slot = found.allocation.slots[2]
        depth = found.allocation.trees["shop"].depth
        fields = {name: field_id for field_id, name, _ in pipeline.schema.packet_out}
        packet = p4r.PacketOut(payload=b"\0")
        # A report of web2 sets (1) a score of 320.
        for name, value in {"op": 1, "depth": depth, "slot": slot, "sid": 2, "score": 320}.items():
            packet.metadata.add(metadata_id=fields[name], value=to_bytes(value))
        await session.packet_out([packet])
    async with running(load(config_file)) as controller:
        await installed(controller)
        await expect(controller)
        assert (await leaves_of(controller))[slot] == (FRESH - 320) << 16 | 2


async def test_restarted_switch_is_seeded_again(config_file: Path, switch: Switch) -> None:
    async with running(load(config_file)) as controller:
        await expect(controller)
        connections = controller.health.connections
        switch.stop()
        switch.start()
        async with asyncio.timeout(LIMIT):
            while controller.health.connections == connections or not controller.health.ok:
                await asyncio.sleep(0.05)
        await expect(controller)


def test_slots_equal_the_size_of_the_program() -> None:
    assert 2 << limits.MAX_TREE_DEPTH == limits.TREE_SLOTS
    assert Installed({}).trees == {}

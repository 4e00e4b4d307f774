# SPDX-License-Identifier: Apache-2.0
"""Changes of the configuration on a real switch: the entries that are written, and those that stay."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from finsy.proto import p4r

from conftest import PROGRAM, Switch
from frontage.config import edit, load, loads
from frontage.config.vips import Policy, ServerState
from frontage.p4.entries import Action, Key, State
from frontage.service.health import Phase
from frontage.service.status import read_status
from frontage.state.blocks import masking, server, unseal, vip
from frontage.state.errors import ReconcileError
from frontage.state.reconcile import plan
from live import LIMIT, connected, edited, installed, running
from scale import large_config


async def test_drained_server_keeps_its_connections(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        await controller.apply(edited(config_file, lambda text: edit.set_server_state(text, "web2", ServerState.DRAINING)))
        after = await installed(controller)
        vip_id = controller_vip_id(after, "203.0.113.10")
        dip = Key("vip.dip4", (int(IPv4Address("10.0.0.12")), 6, 8080))
        # All entries that its connections need stay in place.
        assert after[Key("server.server4", (2,))] == before[Key("server.server4", (2,))]
        slot = before[Key("choice.member", (vip_id, 2))].params[0]
        assert after[Key("choice.member", (vip_id, 2))] == Action("set_member", (slot, 0))
        assert after[dip].params == (*before[dip].params[:3], 0, *before[dip].params[4:])
        # No entry leads new connections to it.
        assert Action("select_server", (2,)) in before.values()
        assert Action("select_server", (2,)) not in after.values()
        # Slots of other servers in the consistent hash stay.
        for key, action in before.items():
            if key.table == "maglev.maglev" and action.params != (2,):
                assert after[key] == action


def controller_vip_id(state: State, address: str) -> int:
    return state[Key("vip.vip4", (int(IPv4Address(address)), 6, 80))].params[0]


async def test_added_and_removed_servers_do_not_move_others(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)

        def add(text: str) -> str:
            return edit.add_server(text, name="web5", vip="shop", address="10.0.0.11", port=8081)

        await controller.apply(edited(config_file, add))
        grown = await installed(controller)
        kept = ("choice.member", "server.server4", "vip.dip4", "forwarding.next_hop", "vip.vip4")
        for key, action in before.items():
            if key.table in kept:
                assert grown[key] == action
        await controller.apply(edited(config_file, lambda text: edit.remove_server(text, "web5")))
        back = await installed(controller)
        assert {key: action for key, action in back.items() if key.table in kept} == {
            key: action for key, action in before.items() if key.table in kept
        }


async def test_rotated_key_is_installed_next_to_the_old_one(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        one = await installed(controller)
        for expected_keys in ((1, 2), (2, 3)):
            config = edited(config_file, lambda text: edit.rotate_key(text, config_file.parent))
            assert tuple(key.id for key in config.cookie_keys) == expected_keys
            await controller.apply(config)
            state = await installed(controller)
            newest = expected_keys[-1]
            assert state[Key("masking.active_key", ())] == Action("set_active_key", (newest & 1, newest))
            opened = {key.match[0] for key in state if key.table == "open.round0"}
            assert opened == {0, 1}
        assert {key.match[0] for key in one if key.table == "open.round0"} == {1}


async def test_quic_clients_keep_their_servers_after_rotation_and_drain(quic_file: Path) -> None:
    """Cookies and connection ids of the previous key, and of a draining server, stay valid."""
    held = (*unseal.TABLES, masking.STATIC_COOKIE, *server.TABLES, vip.COOKIE_ADDRESS, vip.VIP6)
    async with running(load(quic_file)) as controller:
        before = await installed(controller)
        await controller.apply(edited(quic_file, lambda text: edit.rotate_key(text, quic_file.parent)))
        await controller.apply(edited(quic_file, lambda text: edit.set_server_state(text, "film1", ServerState.DRAINING)))
        after = await installed(controller)
        for key, action in before.items():
            if key.table in held:
                assert after[key] == action
        assert sum(key.table == masking.STATIC_COOKIE for key in after) == 2 * 2
        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert set(status["handshakes"]) == {"taken", "refused"}
        assert status["vips"][0]["cookie_prefix"] == "2001:db8:c00c:1e::/64"


async def test_older_key_is_rejected(config_file: Path) -> None:
    old = load(config_file)
    async with running(old) as controller:
        await installed(controller)
        await controller.apply(edited(config_file, lambda text: edit.rotate_key(text, config_file.parent)))
        with pytest.raises(ReconcileError, match="add a key with an id above"):
            await controller.apply(old)
        assert controller.health.phase is Phase.FAILED
        await controller.apply(load(config_file))
        await installed(controller)


async def test_policy_change_is_one_write(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        await installed(controller)
        writes = controller.health.writes.total()
        await controller.apply(edited(config_file, lambda text: edit.set_policy(text, "shop", Policy.CHEETAH_RR)))
        assert controller.health.writes.total() == writes + 1


async def test_drift_is_repaired(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        session, pipeline = connected(controller)
        gone = Key("server.server4", (2,))
        wrong = Key("server.server4", (3,))
        extra = Key("server.server4", (77,))
        await session.write(pipeline.schema, p4r.Update.DELETE, [(gone, None)])
        await session.write(pipeline.schema, p4r.Update.MODIFY, [(wrong, before[gone])])
        await session.write(pipeline.schema, p4r.Update.INSERT, [(extra, before[gone])])
        status = await read_status(session, pipeline.schema, controller.config)
        assert status["difference"]["tables"] == {"server.server4": {"missing": 1, "different": 1, "unexpected": 1}}
        await controller.apply(controller.config)
        assert await installed(controller) == before


async def test_error_names_the_rejected_entry(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        session, pipeline = connected(controller)
        key = Key("server.server4", (1,))
        with pytest.raises(Exception, match=r"insert server.server4\[1\] -> to_server4.*ALREADY_EXISTS"):
            await session.write(pipeline.schema, p4r.Update.INSERT, [(key, before[key])])


@pytest.mark.parametrize("vips", [1, 512])
async def test_largest_configuration_is_installed_once(folder: Path, switch: Switch, vips: int) -> None:
    text = large_config(
        4096,
        vips,
        address=switch.address,
        p4info=str(PROGRAM / "frontage.p4info.txtpb"),
        json=str(PROGRAM / "frontage.json"),
    )
    config = loads(text, folder / "large.yaml")
    for writes in (True, False):
        async with running(config) as controller:
            async with asyncio.timeout(10 * LIMIT):
                await controller.installed()
            assert (controller.health.writes.total() > 0) == writes
            session, pipeline = connected(controller)
            found = await plan(session, pipeline.schema, config)
            assert len(found.difference) == 0

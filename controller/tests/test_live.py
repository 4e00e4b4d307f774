"""The controller against a real switch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from finsy.proto import p4r

from conftest import PROGRAM, Switch
from frontage import edit
from frontage.blocks import demand, masking, server, unseal, vip
from frontage.config import Config, load, loads
from frontage.controller import Controller
from frontage.health import Phase
from frontage.p4errors import ElectionIdInUseError, SwitchError, UnreachableError
from frontage.p4info import Pipeline
from frontage.p4runtime import Role, Session
from frontage.reconcile import ReconcileError, plan
from frontage.state import Action, Key, State
from frontage.status import read_status
from frontage.vips import Policy, ServerState
from scale import large_config

LIMIT = 60.0


@asynccontextmanager
async def running(config: Config, election_id: int | None = None) -> AsyncIterator[Controller]:
    controller = Controller(config, election_id=election_id)
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled(), f"it ended by itself: {task.exception()!r}"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def installed(controller: Controller) -> State:
    """Wait until the configuration is installed, and return what the switch then holds."""
    async with asyncio.timeout(LIMIT):
        await controller.installed()
    assert controller.session is not None
    assert controller.pipeline is not None
    found = await plan(controller.session, controller.pipeline.schema, controller.config)
    assert len(found.difference) == 0
    return found.installed


def edited(file: Path, change: edit.Edit) -> Config:
    return edit.change_file(file, change)


async def test_install_and_restart_of_the_controller_writes_nothing(config_file: Path) -> None:
    async with running(load(config_file)) as first:
        before = await installed(first)
        assert first.health.pipelines_set == 1
        assert first.health.writes["inserted"] > 2000
    async with running(load(config_file)) as second:
        assert await installed(second) == before
        assert second.health.pipelines_set == 0
        assert second.health.writes.total() == 0


async def test_restart_of_the_switch_heals(config_file: Path, switch: Switch) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        switch.stop()
        await until(lambda: controller.health.phase is Phase.CONNECTING)
        assert controller.health.error
        switch.start()
        await until(lambda: controller.health.phase is Phase.INSTALLED)
        assert await installed(controller) == before
        assert controller.health.pipelines_set == 2


async def test_controller_that_is_started_before_the_switch(config_file: Path, switch: Switch) -> None:
    switch.stop()
    async with running(load(config_file)) as controller:
        await until(lambda: controller.health.error is not None)
        switch.start()
        await installed(controller)


async def test_standby_takes_over(config_file: Path) -> None:
    config = load(config_file)
    async with running(config) as standby:
        async with running(config, election_id=200) as primary:
            await until(lambda: primary.primary and primary.health.phase is Phase.INSTALLED)
            await until(lambda: standby.health.phase is Phase.STANDBY)
            assert not standby.primary
        await until(lambda: standby.primary and standby.health.phase is Phase.INSTALLED)
        # It finds everything in place.
        writes = standby.health.writes.total()
        await standby.apply(edited(config_file, lambda text: edit.set_policy(text, "shop", Policy.HASH)))
        assert standby.health.writes.total() == writes + 1


async def test_second_controller_with_the_same_election_id_stands_by(config_file: Path) -> None:
    config = load(config_file)
    async with running(config, election_id=7) as first:
        await installed(first)
        async with running(config, election_id=7) as second:
            await until(lambda: second.health.phase is Phase.STANDBY)
            assert first.primary
            assert not second.primary


async def test_two_standbys_one_takes_over(config_file: Path) -> None:
    config = load(config_file)
    async with running(config, election_id=3) as one, running(config, election_id=2) as two:
        async with running(config, election_id=9) as primary:
            await installed(primary)
            await until(lambda: one.health.phase is Phase.STANDBY and two.health.phase is Phase.STANDBY)
        await until(lambda: one.primary or two.primary)
        await until(lambda: {one.health.phase, two.health.phase} == {Phase.STANDBY, Phase.INSTALLED})
        assert one.primary != two.primary


async def test_stops_although_it_was_just_woken(config_file: Path) -> None:
    """A role changes in the very moment in which the controller is cancelled."""
    controller = Controller(load(config_file))
    task = asyncio.create_task(controller.run())
    async with asyncio.timeout(LIMIT):
        await controller.installed()
        await asyncio.sleep(0)
        controller._wake.set()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


async def test_drain(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        await controller.apply(edited(config_file, lambda text: edit.set_server_state(text, "web2", ServerState.DRAINING)))
        after = await installed(controller)
        vip_id = controller_vip_id(after, "203.0.113.10")
        dip = Key("vip.dip4", (int(IPv4Address("10.0.0.12")), 6, 8080))
        # It keeps all that its connections need, in the same places ...
        assert after[Key("server.server4", (2,))] == before[Key("server.server4", (2,))]
        slot = before[Key("choice.member", (vip_id, 2))].params[0]
        assert after[Key("choice.member", (vip_id, 2))] == Action("is_member", (slot, 0))
        assert after[dip].params == (*before[dip].params[:3], 0, *before[dip].params[4:])
        # ... and nothing leads new ones to it.
        assert Action("pick", (2,)) in before.values()
        assert Action("pick", (2,)) not in after.values()
        # Slots of the consistent hash that were others' have stayed theirs.
        for key, action in before.items():
            if key.table == "maglev.maglev" and action.params != (2,):
                assert after[key] == action


def controller_vip_id(state: State, address: str) -> int:
    return state[Key("vip.vip4", (int(IPv4Address(address)), 6, 80))].params[0]


async def test_add_and_remove_server_keeps_the_others_places(config_file: Path) -> None:
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


async def test_key_rotation(config_file: Path) -> None:
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


async def test_quic_services_keep_what_clients_hold(quic_file: Path) -> None:
    """Cookies and connection ids of the previous key open after a rotation, and those of a draining server."""
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
        assert controller.session is not None
        assert controller.pipeline is not None
        status = await read_status(controller.session, controller.pipeline.schema, controller.config)
        assert set(status["handshakes"]) == {"taken", "refused"}
        assert status["vips"][0]["cookie_prefix"] == "2001:db8:c00c:1e::/64"


async def test_older_key_is_refused(config_file: Path) -> None:
    old = load(config_file)
    async with running(old) as controller:
        await installed(controller)
        await controller.apply(edited(config_file, lambda text: edit.rotate_key(text, config_file.parent)))
        with pytest.raises(ReconcileError, match="key ids only grow"):
            await controller.apply(old)
        assert controller.health.phase is Phase.FAILED
        await controller.apply(load(config_file))
        await installed(controller)


async def test_change_of_policy_is_one_write(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        await installed(controller)
        writes = controller.health.writes.total()
        await controller.apply(edited(config_file, lambda text: edit.set_policy(text, "shop", Policy.CHEETAH_RR)))
        assert controller.health.writes.total() == writes + 1


async def test_drift_is_repaired(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        session, pipeline = controller.session, controller.pipeline
        assert session is not None
        assert pipeline is not None
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


async def test_what_the_switch_refuses_is_named(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        session, pipeline = controller.session, controller.pipeline
        assert session is not None
        assert pipeline is not None
        key = Key("server.server4", (1,))
        with pytest.raises(Exception, match=r"insert server.server4\[1\] -> to_server4.*ALREADY_EXISTS"):
            await session.write(pipeline.schema, p4r.Update.INSERT, [(key, before[key])])


async def test_backup_may_read_but_not_write(config_file: Path) -> None:
    config = load(config_file)
    async with running(config, election_id=5) as controller:
        before = await installed(controller)
        pipeline = controller.pipeline
        assert pipeline is not None
        async with Session(config.device.address, config.device.device_id) as backup:
            await backup.arbitrate(4)
            arbitration = await anext(aiter(backup.arbitrations()))
            assert arbitration.role is Role.BACKUP
            assert (await plan(backup, pipeline.schema, config)).installed == before
            with pytest.raises(Exception, match=r"(?i)permission"):
                await backup.write(pipeline.schema, p4r.Update.DELETE, [(Key("server.server4", (1,)), None)])


async def test_who_reads_while_a_session_is_closed_is_told(config_file: Path) -> None:
    device = load(config_file).device
    pipeline = Pipeline.load(device.pipeline.p4info, device.pipeline.json_file)

    async def read(session: Session) -> None:
        while True:
            await session.read_counters([pipeline.schema.counter(demand.HANDSHAKES)])

    for closes in (True, False):
        async with Session(device.address, device.device_id) as session:
            await session.take(pipeline, LIMIT)
            reading = asyncio.create_task(read(session))
            await asyncio.sleep(0)
            if closes:
                await session.close()
            else:
                reading.cancel()
            with pytest.raises(UnreachableError if closes else asyncio.CancelledError):
                await reading


async def test_only_a_switch_without_controller_is_taken(config_file: Path) -> None:
    device = load(config_file).device
    pipeline = Pipeline.load(device.pipeline.p4info, device.pipeline.json_file)
    async with Session(device.address, device.device_id) as first:
        await first.take(pipeline, LIMIT)
        assert await first.installed_pipeline() == pipeline.cookie
        async with Session(device.address, device.device_id) as second:
            with pytest.raises(ElectionIdInUseError):
                await second.take(pipeline, LIMIT)
        await first.arbitrate(2)
        assert (await anext(aiter(first.arbitrations()))).election_id == 2
        async with Session(device.address, device.device_id) as third:
            with pytest.raises(SwitchError, match="another controller"):
                await third.take(pipeline, LIMIT)


@pytest.mark.parametrize("vips", [1, 512])
async def test_largest_configuration_in_under_five_seconds(folder: Path, switch: Switch, vips: int) -> None:
    text = large_config(
        4096,
        vips,
        address=switch.address,
        p4info=str(PROGRAM / "frontage.p4info.txtpb"),
        json=str(PROGRAM / "frontage.json"),
    )
    config = loads(text, folder / "large.yaml")
    for writes in (True, False):
        # Of this process alone, since tests share their machine; the wall clock of a quiet one is not much more.
        begin = time.process_time()
        async with running(config) as controller:
            async with asyncio.timeout(10 * LIMIT):
                await controller.installed()
            seconds = time.process_time() - begin
            print(f"4,096 servers, {vips} VIPs: {seconds:.2f} s of one core, {controller.health.last}")
            assert seconds < 5
            assert (controller.health.writes.total() > 0) == writes
            assert controller.session is not None
            assert controller.pipeline is not None
            found = await plan(controller.session, controller.pipeline.schema, config)
            assert len(found.difference) == 0


async def test_another_program_on_the_switch_is_replaced(config_file: Path) -> None:
    config = load(config_file)
    async with running(config) as controller:
        before = await installed(controller)
        pipeline = controller.pipeline
        assert pipeline is not None
        async with Session(config.device.address, config.device.device_id) as other:
            await other.arbitrate(1000)
            arbitration = await anext(aiter(other.arbitrations()))
            assert arbitration.role is Role.PRIMARY
            await until(lambda: controller.health.phase is Phase.STANDBY)
            await other.set_pipeline(Pipeline(pipeline.schema, pipeline.device_config, cookie=42))
        await until(lambda: controller.primary and controller.health.phase is Phase.INSTALLED)
        assert controller.health.pipelines_set == 2
        assert await installed(controller) == before

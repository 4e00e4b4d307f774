# SPDX-License-Identifier: Apache-2.0
"""The controller with a real switch: start, standby, reconnection, and other controllers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from finsy.proto import p4r

from conftest import Switch
from frontage.config import Config, edit, load
from frontage.config.devices import Device
from frontage.config.vips import Policy
from frontage.p4.entries import Key
from frontage.p4.errors import ElectionIdInUseError, SwitchError, UnreachableError
from frontage.p4.p4info import Pipeline
from frontage.p4.session import Role, Session
from frontage.service.controller import Controller
from frontage.service.health import Phase
from frontage.state.blocks import demand
from frontage.state.reconcile import plan
from live import LIMIT, edited, installed, running, until


async def test_restarted_controller_writes_nothing(config_file: Path) -> None:
    async with running(load(config_file)) as first:
        before = await installed(first)
        assert first.health.pipelines_set == 1
        assert first.health.writes["inserted"] > 2000
    async with running(load(config_file)) as second:
        assert await installed(second) == before
        assert second.health.pipelines_set == 0
        assert second.health.writes.total() == 0


async def test_restarted_switch_is_installed_again(config_file: Path, switch: Switch) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        switch.stop()
        await until(lambda: controller.health.phase is Phase.CONNECTING)
        assert controller.health.error
        switch.start()
        await until(lambda: controller.health.phase is Phase.INSTALLED)
        assert await installed(controller) == before
        assert controller.health.pipelines_set == 2


async def test_controller_waits_for_the_switch(config_file: Path, switch: Switch) -> None:
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
        # All entries are in place.
        writes = standby.health.writes.total()
        await standby.apply(edited(config_file, lambda text: edit.set_policy(text, "shop", Policy.HASH)))
        assert standby.health.writes.total() == writes + 1


async def test_second_controller_with_same_election_id_is_standby(config_file: Path) -> None:
    config = load(config_file)
    async with running(config, election_id=7) as first:
        await installed(first)
        async with running(config, election_id=7) as second:
            await until(lambda: second.health.phase is Phase.STANDBY)
            assert first.primary
            assert not second.primary


async def test_one_of_two_standbys_takes_over(config_file: Path) -> None:
    config = load(config_file)
    async with running(config, election_id=3) as one, running(config, election_id=2) as two:
        async with running(config, election_id=9) as primary:
            await installed(primary)
            await until(lambda: one.health.phase is Phase.STANDBY and two.health.phase is Phase.STANDBY)
        await until(lambda: one.primary or two.primary)
        await until(lambda: {one.health.phase, two.health.phase} == {Phase.STANDBY, Phase.INSTALLED})
        assert one.primary != two.primary


async def test_cancellation_during_role_change_stops_the_controller(config_file: Path) -> None:
    """The role changes at the same moment as the controller is cancelled."""
    controller = Controller(load(config_file))
    task = asyncio.create_task(controller.run())
    async with asyncio.timeout(LIMIT):
        await controller.installed()
        await asyncio.sleep(0)
        controller._wake.set()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


async def test_backup_can_read_but_not_write(config_file: Path) -> None:
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


async def taken(device: Device, pipeline: Pipeline) -> Session:
    """Return a session that is primary. The switch may not have noticed the end of an earlier one yet."""
    async with asyncio.timeout(LIMIT):
        while True:
            session = Session(device.address, device.device_id)
            try:
                await session.take(pipeline, LIMIT)
            except ElectionIdInUseError:
                await session.close()
                await asyncio.sleep(0.05)
            else:
                return session


async def test_read_during_close_raises_unreachable(config_file: Path) -> None:
    device = load(config_file).device
    pipeline = Pipeline.load(device.pipeline.p4info, device.pipeline.json_file)

    async def read(session: Session) -> None:
        while True:
            await session.read_counters([pipeline.schema.counter(demand.HANDSHAKES)])

    for closes in (True, False):
        async with await taken(device, pipeline) as session:
            reading = asyncio.create_task(read(session))
            await asyncio.sleep(0)
            if closes:
                await session.close()
            else:
                reading.cancel()
            with pytest.raises(UnreachableError if closes else asyncio.CancelledError):
                await reading


async def test_take_rejects_a_switch_with_a_controller(config_file: Path) -> None:
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
            with pytest.raises(SwitchError, match="another primary"):
                await third.take(pipeline, LIMIT)


async def test_other_program_on_the_switch_is_replaced(config_file: Path) -> None:
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


async def test_switch_does_not_count_as_installed_while_it_gets_another_device(config_file: Path) -> None:
    config = load(config_file)
    async with running(config) as controller:
        await installed(controller)
        phases: list[Phase] = []

        async def note_phase(_session: Session, _pipeline: Pipeline, _config: Config) -> None:
            phases.append(controller.health.phase)

        controller.before_install = note_phase
        device = config.device.model_copy(update={"election_id": config.device.election_id + 1})
        await controller.apply(config.model_copy(update={"device": device}))
        assert phases == [Phase.CONNECTING]

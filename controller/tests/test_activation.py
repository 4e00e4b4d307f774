# SPDX-License-Identifier: Apache-2.0
"""Changes of servers' states and of defences alone: the same entries and leaves as from a comparison of the whole state, and no reading."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.config import Config, load, loads
from frontage.config.syn_defence import SynDefence, SynMode
from frontage.config.vips import START_SHARES, Policy, Server, ServerState
from frontage.service.controller import Controller
from frontage.state import activation
from frontage.state.allocation import Installed, allocate
from frontage.state.desired import desired
from frontage.state.resolved import resolve
from frontage.state.tree import leaf_ops
from live import installed, running
from scale import large_config

FIELDS = tuple(Server.model_fields)


def with_states(config: Config, *draining: str) -> Config:
    """Return the configuration with exactly these servers draining."""
    servers = tuple(
        server
        if (server.name in draining) != server.active
        else server.model_copy(update={"state": ServerState.DRAINING if server.name in draining else ServerState.ACTIVE})
        for server in config.servers
    )
    return config.model_copy(update={"servers": servers})


def with_shares(config: Config, rng: random.Random) -> Config:
    """Return the configuration with some of its servers in slow start."""
    servers = tuple(
        server.with_share(rng.choice(START_SHARES)) if rng.random() < 0.3 else Server(**{n: getattr(server, n) for n in FIELDS})
        for server in config.servers
    )
    return config.model_copy(update={"servers": servers})


def with_modes(config: Config, rng: random.Random) -> Config:
    """Return the configuration with some of its defended VIPs under attack."""
    modes = {vip.name: rng.choice((SynMode.AUTO, SynMode.ALWAYS)) for vip in config.vips}
    vips = tuple(
        vip.model_copy(update={"syn_defence": vip.syn_defence.model_copy(update={"mode": modes[vip.name]})})
        if vip.syn_defence is not None
        else vip
        for vip in config.vips
    )
    return config.model_copy(update={"vips": vips})


def random_config(rng: random.Random) -> Config:
    """Return services of several sizes, policies and weights."""
    config = loads(large_config(rng.randint(4, 40), rng.randint(1, 4)), Path("large.yaml"))
    policies = [
        vip.model_copy(
            update={"policy": rng.choice(list(Policy)), "slow_start": 10.0, "syn_defence": rng.choice((None, SynDefence()))}
        )
        for vip in config.vips
    ]
    servers = [server.model_copy(update={"weight": rng.randint(1, 4)}) for server in config.servers]
    return config.model_copy(update={"vips": tuple(policies), "servers": tuple(servers)})


@pytest.mark.parametrize("seed", range(40))
def test_activation_equals_the_difference_of_the_whole_state(seed: int) -> None:
    rng = random.Random(seed)
    config = random_config(rng)
    names = [server.name for server in config.servers]
    allocation = allocate(config, Installed({}))
    old = with_states(config, *rng.sample(names, rng.randint(0, len(names))))
    for _ in range(4):
        new = with_modes(with_shares(with_states(old, *rng.sample(names, rng.randint(0, len(names)))), rng), rng)
        assert activation.is_activation(old, new)
        before = desired(old, allocation)
        found = activation.activation(old, new, allocation)
        allocation = found.allocation
        after = desired(new, allocation)
        assert allocation.others == allocate(new, Installed(before)).others
        changes = found.entries
        assert not changes.missing.keys() & before.keys()
        assert changes.different.keys() <= before.keys()
        kept = {key: action for key, action in before.items() if key not in changes.unexpected}
        assert kept | changes.different | changes.missing == after
        assert all(before[key] != action for key, action in changes.different.items())
        expected = leaf_ops(resolve(new, allocation), Installed(before), resync=False)
        assert [sorted(part) for part in found.leaves] == [sorted(part) for part in expected]
        old = new


def test_change_of_anything_else_is_not_an_activation() -> None:
    config = load(EXAMPLE)
    assert activation.is_activation(config, with_states(config, "web1"))
    heavier = config.servers[0].model_copy(update={"weight": 9})
    assert not activation.is_activation(config, config.model_copy(update={"servers": (heavier, *config.servers[1:])}))
    assert not activation.is_activation(config, config.model_copy(update={"servers": config.servers[1:]}))
    assert not activation.is_activation(config, load(EXAMPLE))
    defences = [None, *(SynDefence(mode=mode) for mode in SynMode), SynDefence(mode=SynMode.ALWAYS, mss=1220)]
    auto = defences[1 + list(SynMode).index(SynMode.AUTO)]
    for defence in defences:
        before, after = (
            config.model_copy(update={"vips": (config.vips[0].model_copy(update={"syn_defence": one}), *config.vips[1:])})
            for one in (auto, defence)
        )
        assert activation.is_activation(before, after) == (defence in (auto, SynDefence(mode=SynMode.ALWAYS)))


def test_each_switch_of_a_fleet_gets_an_activation() -> None:
    config = load(EXAMPLE.with_name("fleet.yaml"))
    for before, after in zip(config.switches, with_states(config, "web1").switches, strict=True):
        assert activation.is_activation(before, after)
    one, two = config.switches
    assert not activation.is_activation(one, two)


async def test_controller_writes_an_activation_without_reading(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(config_file)
    async with running(config) as controller:
        await installed(controller)

        async def fail(*_args: object) -> None:
            raise AssertionError("the controller reads the switch")

        with monkeypatch.context() as patched:
            patched.setattr("frontage.service.controller.plan", fail)
            for draining in (("web1", "web2"), ("web1",), (), ("web1", "web2", "web3", "web4")):
                config = with_states(config, *draining)
                await controller.apply(config)
                assert controller.health.last is not None
                assert controller.health.last.writes
        # The switch agrees.
        await installed(controller)


async def test_change_interrupts_an_audit(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(config_file)
    begun = asyncio.Event()

    async def stuck(*_args: object) -> None:
        begun.set()
        await asyncio.sleep(3600)

    async with running(config) as controller:
        await installed(controller)
        with monkeypatch.context() as patched:
            patched.setattr("frontage.service.controller.plan", stuck)
            audit(controller)
            async with asyncio.timeout(30):
                await begun.wait()
                await controller.apply(with_states(config, "web1"))
        audit(controller)
        await installed(controller)


def audit(controller: Controller) -> None:
    """Have the controller read back the whole state now."""
    controller._audit = True
    controller._wake.set()

# SPDX-License-Identifier: Apache-2.0
"""Several switches with one configuration: its checks, rollouts, and what happens when a switch fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from conftest import EXAMPLE, PROGRAM, Switch, new_switch
from frontage.config import Config, ConfigError, edit, load, loads
from frontage.config.vips import ServerState
from frontage.p4.entries import Action, Key, State, exact
from frontage.service import fleet as fleet_module
from frontage.service.daemon import Service
from frontage.service.fleet import Fleet
from frontage.service.health import Phase
from frontage.service.key_holders import KeyHolders
from frontage.service.metrics import FrontageCollector
from frontage.service.status import fleet_status
from frontage.state.errors import ReconcileError
from frontage.state.reconcile import plan
from frontage.state.rollout import preparation
from live import LIMIT, beside, connected, edited, serving, until
from test_activation import with_states

FLEET = EXAMPLE.with_name("fleet.yaml")
TEXT = FLEET.read_text(encoding="utf-8")


def fleet_config(*changes: tuple[str, str]) -> Config:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return loads(text, FLEET)


def add_web3(text: str) -> str:
    return edit.add_server(text, name="web3", vip="shop", address="10.0.0.13", port=8080, sid=3)


def drain_web2(text: str) -> str:
    return edit.set_server_state(text, "web2", ServerState.DRAINING)


# The configuration file


def test_each_switch_has_its_own_sections() -> None:
    one, two = fleet_config().switches
    assert (one.device.name, two.device.name) == ("edge1", "edge2")
    assert str(one.ports[0].mac) == "02:00:00:00:01:01"
    assert str(two.ports[0].mac) == "02:00:00:00:02:01"
    assert one.routes == two.routes
    assert one.devices == ()
    assert two.device.pipeline.p4info.is_absolute()


def test_file_with_one_device_has_one_switch() -> None:
    config = load(EXAMPLE)
    assert config.switches == (config,)
    assert config.device.name == "switch"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: edge2", "name: edge1", '14:11: devices[1].name: duplicate device name "edge1": rename one of the devices'),
        ("127.0.0.1:9560", "127.0.0.1:9559", "15:14: devices[1].address: duplicate address and device id"),
        ('{ id: 2, name: rack, role: server, mac: "02:00:00:00:02', '{ id: 1, name: rack, role: server, mac: "02:00:00:00:02',
         "22:15: devices[1].ports[1].id: duplicate port id 1"),
        ('{ id: 2, name: rack, role: server, mac: "02:00:00:00:02', '{ id: 510, name: rack, role: server, mac: "02:00:00:00:02',
         "22:15: devices[1].ports[1].id: port 510 is the CPU port"),
        ("port: uplink, mac", "port: upLink, mac", '27:32: routes[0].port: unknown port "upLink"'),
        ("# The same for", "device: { address: x, cpu_port: 1, pipeline: { p4info: x, json: x } }\n# The same for",
         "needs either `device` (one switch) or `devices` (a fleet)"),
        ("  - name: edge1\n", "  - name: edge1\n    speed: 3\n", '6:5: devices[0].speed: unknown key "speed"'),
    ],
)  # fmt: skip
def test_problems_are_reported_where_they_are(old: str, new: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)) as caught:
        fleet_config((old, new))
    assert len(caught.value.problems) == 1


def test_missing_ports_are_reported() -> None:
    text = re.sub(r"    ports:\n(      - .*\n)+", "", TEXT)
    with pytest.raises(
        ConfigError, match=r"devices\[0\]\.ports: missing: add the switch's ports, here or for all switches"
    ) as caught:
        loads(text, FLEET)
    assert {problem.path for problem in caught.value.problems} >= {("devices", 0, "ports"), ("devices", 1, "ports")}


# The first round of a rollout


def states(config: Config) -> dict[str, bool]:
    return {server.name: server.active for server in config.servers}


def test_change_that_needs_no_preparation_takes_one_round() -> None:
    old, new = fleet_config(), loads(drain_web2(TEXT), FLEET)
    assert preparation(old.switches, new) is new
    assert preparation(old.switches, old) is old


def test_first_round_announces_new_servers_and_keeps_removed_ones() -> None:
    old, new = fleet_config(), loads(edit.remove_server(add_web3(TEXT), "web2"), FLEET)
    assert states(preparation(old.switches, new)) == {"web1": True, "web3": False, "web2": False}
    # A server that only some switches know is new.
    half = [new.switches[0], old.switches[1]]
    assert states(preparation(half, new)) == {"web1": True, "web3": False, "web2": False}
    assert states(preparation(new.switches, new)) == states(new)


def test_server_with_another_address_is_new() -> None:
    old, new = fleet_config(), fleet_config(("address: 10.0.0.12, port: 8080", "address: 10.0.0.13, port: 8080"))
    prepared = preparation(old.switches, new)
    assert states(prepared) == {"web1": True, "web2": False}
    assert str(prepared.servers[1].address) == "10.0.0.13"


def test_first_round_seals_with_the_key_that_all_switches_have() -> None:
    old, new = fleet_config(), loads(edit.rotate_key(TEXT, FLEET.parent), FLEET)
    prepared = preparation(old.switches, new)
    assert [key.id for key in new.cookie_keys] == [1, 2]
    assert [key.id for key in prepared.cookie_keys] == [2, 1]
    # After the first round, all switches know the new key.
    second = preparation([prepared, prepared], new)
    assert [key.id for key in second.cookie_keys] == [2, 1]


# Real switches


@pytest.fixture
def switches(folder: Path) -> Iterator[list[Switch]]:
    started = []
    for name in ("edge1", "edge2"):
        (folder / name).mkdir()
        switch = new_switch(folder / name)
        switch.start()
        started.append(switch)
    yield started
    for switch in started:
        switch.stop()


@pytest.fixture
def fleet_file(folder: Path, switches: list[Switch]) -> Path:
    text = TEXT.replace("../../build/p4", str(PROGRAM)).replace("127.0.0.1:9464", "127.0.0.1:0")
    for port, switch in zip((9559, 9560), switches, strict=True):
        text = text.replace(f"127.0.0.1:{port}", switch.address)
    file = folder / "fleet.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def with_small_table(file: Path, table: str, size: int) -> None:
    """Let the program of edge2 have room for ``size`` entries in ``table``, by its P4Info."""
    p4info = (PROGRAM / "frontage.p4info.txtpb").read_text()
    begin = p4info.index(f'"FrontageIngress.{table}"')
    changed = file.with_name("small.p4info.txtpb")
    changed.write_text(p4info[:begin] + re.sub(r"\n  size: \d+", f"\n  size: {size}", p4info[begin:], count=1))
    before, after = file.read_text().split("  - name: edge2")
    after = re.sub(r"p4info: .*", f"p4info: {changed}", after, count=1)
    file.write_text(f"{before}  - name: edge2{after}")


@asynccontextmanager
async def fleet_of(file: Path) -> AsyncIterator[Fleet]:
    """Run a fleet whose switches have the configuration of ``file``."""
    fleet = Fleet(load(file))
    async with beside(fleet.run()), asyncio.timeout(LIMIT):
        await fleet.installed()
        yield fleet


async def change(fleet: Fleet, file: Path, edited_by: Callable[[str], str]) -> None:
    await fleet.change(edited(file, edited_by))
    await fleet.installed()


async def read(fleet: Fleet) -> list[State]:
    """Return the entries of each switch, which must be those of its configuration."""
    result = []
    for controller in fleet.controllers.values():
        await controller.installed()
        session, pipeline = connected(controller)
        found = await plan(session, pipeline.schema, controller.config)
        assert len(found.difference) == 0
        result.append(found.installed)
    return result


SHARED = ("maglev.maglev", "assign.pool", "server.server4", "vip.vip4", "open.round0", "seal.round0", "masking.active_key")
"""Tables that are the same in all switches. The slots of servers in the trees may differ."""


def entries(state: State, *tables: str) -> State:
    return {key: action for key, action in state.items() if key.table in tables}


async def test_all_switches_agree_on_cookies_and_hashes(fleet_file: Path) -> None:
    async with fleet_of(fleet_file) as fleet:
        for edited_by in (add_web3, drain_web2, lambda text: edit.rotate_key(text, fleet_file.parent)):
            await change(fleet, fleet_file, edited_by)
            one, two = await read(fleet)
            same = (
                "maglev.maglev",
                "second_hop.others",
                "assign.pool",
                "server.server4",
                "choice.member",
                "open.round0",
                "seal.round0",
                "masking.active_key",
            )
            assert entries(one, *same) == entries(two, *same)
            assert {key.table for key in entries(one, *same)} == set(same)
        assert one[Key("masking.active_key", ())] == Action("set_active_key", (0, 2))


def tried(state: State) -> dict[tuple[int, int], list[int]]:
    """Return the SIDs that a switch tries for each slot, by VIP id and slot."""
    result = {exact(key.match): [*action.params] for key, action in entries(state, "maglev.maglev").items()}
    for key, action in entries(state, "second_hop.others").items():
        count, *sids = action.params
        result[exact(key.match)] += sids[:count]
    return {(vip, slot): sids for (vip, slot), sids in result.items()}


async def test_restarted_switch_gets_the_owners_before_all_changes(fleet_file: Path, switches: list[Switch]) -> None:
    async with fleet_of(fleet_file) as fleet:
        first = tried((await read(fleet))[0])
        for edited_by in (add_web3, drain_web2, lambda text: edit.set_server_state(text, "web2", ServerState.ACTIVE), drain_web2):
            await change(fleet, fleet_file, edited_by)
        switches[0].stop()
        await until(lambda: fleet.controllers["edge1"].health.phase is Phase.CONNECTING)
        switches[0].start()
        await until(lambda: not fleet.missing)
        size = 1 + max(slot for _, slot in first)
        for state in await read(fleet):
            for (vip, slot), sids in tried(state).items():
                assert first[vip, slot % size][0] in sids


async def test_rollout_stops_and_returns_if_a_switch_rejects_it(fleet_file: Path) -> None:
    with_small_table(fleet_file, "cclb4.server.server4", 2)
    async with fleet_of(fleet_file) as fleet:
        before = await read(fleet)
        with pytest.raises(ReconcileError, match=r"edge2: .* room for 2: .*: all switches keep the previous configuration"):
            await change(fleet, fleet_file, add_web3)
        assert [entries(state, *SHARED) for state in await read(fleet)] == [entries(state, *SHARED) for state in before]
        assert states(fleet.config) == {"web1": True, "web2": True}
        status = await fleet_status(fleet)
        assert "all switches keep" in status["controller"]["error"]
        # The next change that fits ends the error.
        await change(fleet, fleet_file, lambda text: drain_web2(edit.remove_server(text, "web3")))
        assert (await fleet_status(fleet))["controller"]["error"] is None
        assert all(Action("select_server", (2,)) not in state.values() for state in await read(fleet))


async def test_switches_keep_a_newer_key_that_one_of_them_seals_with(fleet_file: Path) -> None:
    """The new server fits into the pool of edge2 as long as it is draining, so the rollout fails in its second round."""
    with_small_table(fleet_file, "cclb4.assign.pool", 2)
    async with fleet_of(fleet_file) as fleet:
        with pytest.raises(ReconcileError, match=r"edge2: .* room for 2"):
            await change(fleet, fleet_file, lambda text: edit.rotate_key(add_web3(text), fleet_file.parent))
        for state in await read(fleet):
            assert state[Key("masking.active_key", ())] == Action("set_active_key", (0, 2))
            assert Key("server.server4", (3,)) not in state


async def test_unreachable_switch_gets_the_configuration_later(fleet_file: Path, switches: list[Switch]) -> None:
    async with fleet_of(fleet_file) as fleet:
        switches[0].stop()
        await until(lambda: fleet.controllers["edge1"].health.phase is Phase.CONNECTING)
        await change(fleet, fleet_file, drain_web2)
        assert fleet.missing == ["edge1"]
        assert Action("select_server", (2,)) not in (await read_one(fleet, "edge2")).values()
        switches[0].start()
        await until(lambda: not fleet.missing)
        assert Action("select_server", (2,)) not in (await read_one(fleet, "edge1")).values()


async def test_servers_get_keys_only_when_all_switches_have_them(fleet_file: Path, switches: list[Switch]) -> None:
    async with fleet_of(fleet_file) as fleet:
        holders = KeyHolders(lambda: fleet.controllers, frozenset, lambda _server: ())
        first = holders.published()
        switches[0].stop()
        await until(lambda: fleet.controllers["edge1"].health.phase is Phase.CONNECTING)
        await change(fleet, fleet_file, lambda text: edit.rotate_key(text, fleet_file.parent))
        assert fleet.controllers["edge2"].installed_keys == fleet.config.cookie_keys
        assert holders.published() == first
        switches[0].start()
        await until(lambda: not fleet.missing)
        assert holders.published().keys == fleet.config.cookie_keys
        assert holders.published().newest == first.newest + 1


async def read_one(fleet: Fleet, name: str) -> State:
    session, pipeline = connected(fleet.controllers[name])
    return (await plan(session, pipeline.schema, fleet.controllers[name].config)).installed


async def test_rollout_stops_if_a_switch_disappears_during_it(
    fleet_file: Path, switches: list[Switch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "SWITCH_TIMEOUT", 3.0)
    async with fleet_of(fleet_file) as fleet:
        before, _ = await read(fleet)
        switches[1].pause()
        with pytest.raises(ReconcileError, match=r"edge2: not installed after 3 s"):
            await change(fleet, fleet_file, drain_web2)
        await fleet.controllers["edge1"].installed()
        after = await read_one(fleet, "edge1")
        # Connections may have begun by the tables of the rollout, so the switch still knows their servers.
        kept = {key: action for key, action in after.items() if key.table != "second_hop.others"}
        assert kept == before != after


async def test_states_of_servers_reach_each_switch_without_waiting_for_others(
    fleet_file: Path, switches: list[Switch], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: object) -> None:
        raise AssertionError("the controller reads the switch")

    async with fleet_of(fleet_file) as fleet:
        two = fleet.controllers["edge2"]
        with monkeypatch.context() as patched:
            patched.setattr("frontage.service.controller.plan", fail)
            switches[0].pause()
            await fleet.change(with_states(fleet.config, "web2"))
            await until(lambda: two._installation is not None and not states(two._installation.written.config)["web2"])
            switches[0].resume()
            await fleet.installed()
        for state in await read(fleet):
            assert {action.params[0] for action in entries(state, "assign.pool").values()} == {1}


async def test_rejected_states_of_servers_are_not_rolled_back(fleet_file: Path) -> None:
    with_small_table(fleet_file, "cclb4.assign.pool", 1)
    fleet_file.write_text(drain_web2(fleet_file.read_text()))
    async with fleet_of(fleet_file) as fleet:
        await fleet.change(with_states(fleet.config))
        with pytest.raises(ReconcileError, match=r"^edge2: .* room for 1: [^:]*$"):
            await fleet.installed()
        assert {action.params[0] for action in entries(await read_one(fleet, "edge1"), "assign.pool").values()} == {1, 2}
        # The next change that fits ends the error.
        await fleet.change(with_states(fleet.config, "web2"))
        await fleet.installed()
        assert fleet.error is None


async def test_new_change_replaces_a_rollout_that_is_not_complete(fleet_file: Path, switches: list[Switch]) -> None:
    async with fleet_of(fleet_file) as fleet:
        switches[1].pause()
        await fleet.change(edited(fleet_file, add_web3))
        await until(lambda: states(fleet.controllers["edge1"].config) == {"web1": True, "web2": True, "web3": False})
        await fleet.change(edited(fleet_file, drain_web2))
        switches[1].resume()
        await fleet.installed()
        for state in await read(fleet):
            assert {action.params[0] for action in entries(state, "assign.pool").values()} == {1, 3}


async def test_switches_are_added_and_removed(fleet_file: Path) -> None:
    whole = fleet_file.read_text()
    first = re.sub(r"  - name: edge2\n(    .*\n)+", "", whole)
    fleet_file.write_text(first)
    async with fleet_of(fleet_file) as fleet:
        assert list(fleet.controllers) == ["edge1"]
        one = fleet.controllers["edge1"]
        fleet_file.write_text(whole)
        await fleet.change(load(fleet_file))
        await fleet.installed()
        await until(lambda: not fleet.missing)
        assert len(await read(fleet)) == 2
        fleet_file.write_text(first)
        await fleet.change(load(fleet_file))
        await fleet.installed()
        assert list(fleet.controllers.values()) == [one]
        assert one.health.connections == 1


async def test_status_and_metrics_cover_all_switches(fleet_file: Path, switches: list[Switch]) -> None:
    async with fleet_of(fleet_file) as fleet:
        status = await fleet_status(fleet)
        assert [device["name"] for device in status["devices"]] == ["edge1", "edge2"]
        assert status["controller"]["phase"] == "installed"
        each = [device["difference"]["entries"] for device in status["devices"]]
        assert status["difference"]["entries"] == sum(each)
        collector = FrontageCollector(fleet, asyncio.get_running_loop())
        families = {family.name: family for family in await asyncio.to_thread(lambda: list(collector.collect()))}
        for name in ("frontage_phase", "frontage_server_packets", "frontage_dropped_bytes", "frontage_reconcile_duration_seconds"):
            assert {sample.labels["device"] for sample in families[name].samples} == {"edge1", "edge2"}
        switches[1].stop()
        await until(lambda: fleet.controllers["edge2"].health.phase is Phase.CONNECTING)
        status = await fleet_status(fleet)
        assert status["controller"]["phase"] == "connecting"
        assert [device["controller"]["phase"] for device in status["devices"]] == ["installed", "connecting"]
        assert "difference" not in status["devices"][1]


async def test_commands_name_unreachable_switches(fleet_file: Path, switches: list[Switch]) -> None:
    async with asyncio.timeout(LIMIT), serving(Service(fleet_file)) as service:
        await service.fleet.installed()
        switches[1].stop()
        await until(lambda: service.fleet.missing == ["edge2"])
        edited(fleet_file, drain_web2)
        assert await service.changes.installed() == ["edge2"]

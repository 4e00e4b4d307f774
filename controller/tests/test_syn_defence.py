# SPDX-License-Identifier: Apache-2.0
"""The defence against SYN floods: detection, its effect on the configuration, entries, and errors of the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

import texts
from conftest import EXAMPLE, ROOT
from frontage.config import Config, edit, load, loads
from frontage.config.syn_defence import SynDefence, SynMode
from frontage.cookie import CookieKey
from frontage.p4.entries import Action, Key, State
from frontage.service import syn_defence as service
from frontage.service.status import read_status, read_syns
from frontage.service.syn_defence import Attack, SynDefences
from frontage.state.activation import is_activation
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import syn_defence
from frontage.state.desired import desired
from frontage_ptf.syn import Options, isn, key_words
from live import beside, connected, edited, installed, running, until

FILE = Path("demo.yaml")
VIP = "    look_ahead: 65536              # bytes; for information only\n"
BASE = EXAMPLE.read_text(encoding="utf-8")
DEFENCE = SynDefence(threshold=100, hold=5)
problems = partial(texts.problems, file=FILE)


def defended(fields: str, base: str = BASE) -> str:
    """Return the example with a defence of the VIP shop."""
    return texts.replaced(base, VIP, f"{VIP}    syn_defence: {{{fields}}}\n")


def wanted(config: Config) -> State:
    return desired(config, allocate(config, Installed({})))


def entries(config: Config) -> dict[str, list[Action]]:
    """Return the actions by table of the defence."""
    found: dict[str, list[Action]] = {}
    for key, action in wanted(config).items():
        if key.table in syn_defence.TABLES:
            found.setdefault(key.table, []).append(action)
    return found


def test_attack_begins_above_the_threshold_and_ends_after_the_hold_time() -> None:
    attack = Attack()
    steps = [
        (0.0, 0, False),
        (1.0, 100, False),  # the threshold itself
        (2.0, 250, True),
        (3.0, 260, True),
        (6.9, 270, True),  # 4.9 s below it
        (7.0, 500, True),  # above it again
        (11.9, 510, True),
        (12.0, 511, False),
        (13.0, 512, False),
    ]
    for now, syns, expected in steps:
        before = attack.answering
        assert attack.observe(now, syns, DEFENCE) == (before != expected)
        assert attack.answering == expected, now
    assert attack.started == 1


def test_restart_of_a_switch_is_not_an_attack() -> None:
    attack = Attack()
    for now, syns in ((0.0, 1_000_000), (1.0, 1_000_010), (2.0, 5), (3.0, 20)):
        assert not attack.observe(now, syns, DEFENCE)
    assert attack.rate == 15


async def test_attack_changes_only_the_defence(monkeypatch: pytest.MonkeyPatch) -> None:
    config = loads(defended("threshold: 100"), FILE)
    defences = SynDefences()
    assert defences.effective(config) is config
    readings = iter([{"shop": 0}, {"shop": 10**6}])
    changes: list[Config] = []

    async def read(vips: AbstractSet[str]) -> Mapping[str, int]:
        assert vips == {"shop"}
        return next(readings, {})

    async def changed() -> None:
        changes.append(defences.effective(config))

    monkeypatch.setattr(service, "INTERVAL", 0.01)
    async with beside(defences.run(read, changed)):
        await until(lambda: bool(changes))
    (attacked,) = changes
    assert [vip.syn_defence.mode for vip in attacked.vips if vip.syn_defence] == [SynMode.ALWAYS]
    assert entries(attacked)[syn_defence.VIP] == [Action("answer", (1460, 1))]
    assert is_activation(config, attacked)
    # A change of a server during the attack is still only that.
    drained = config.model_copy(update={"servers": (config.servers[0].draining(), *config.servers[1:])})
    assert is_activation(attacked, defences.effective(drained))
    status: dict[str, Any] = {"vips": [{"name": "shop", "syn_defence": {"mode": "always", "answering": True}}]}
    defences.describe(status)
    assert status["vips"][0]["syn_defence"]["mode"] == "auto"
    # A VIP whose defence ends is forgotten.
    assert defences.effective(loads(BASE, FILE)).vips[0].syn_defence is None


def test_entries_follow_the_mode() -> None:
    assert entries(loads(BASE, FILE)) == {syn_defence.ACTIVE_KEY: [Action("set_active_key", (0,))]}
    assert entries(loads(defended("mode: 'off'"), FILE)) == entries(loads(BASE, FILE))
    watched = entries(loads(defended(""), FILE))
    assert watched[syn_defence.VIP] == [Action("watch")]
    assert len(watched[syn_defence.SECRETS]) == len(watched[syn_defence.CLOCK]) == 1
    always = entries(loads(defended("mode: always, mss: 8960"), FILE))
    assert always[syn_defence.VIP] == [Action("answer", (8960, 1))]


def test_key_agrees_with_the_vectors() -> None:
    for vector in json.loads((ROOT / "docs" / "cookie-vectors.json").read_text())["syn"]:
        secret = bytes.fromhex(vector["secret"])
        options = Options(timestamps=vector["timestamps"], window_scale=vector["window_scale"], sack=vector["sack"])
        client = vector["client"], vector["client_port"], vector["client_isn"]
        assert isn(secret, *client, vector["epoch"], vector["age"], options, vector["mss_code"]) == vector["isn"]
        assert CookieKey(1, secret).syn_key == key_words(secret)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (defended("mode: sometimes"), "mode", "unknown mode \"sometimes\": use 'auto'"),
        (defended("threshold: 0"), "threshold", '"0" is below the minimum of 1: give the SYNs per second'),
        (defended("hold: 0"), "hold", '"0" is below the minimum of 1.0: give the seconds below the threshold'),
        (defended("mss: 100"), "mss", '"100" is below the minimum of 536: give the maximum segment size'),
    ],
)
def test_errors_have_place_fault_and_fix(text: str, where: str, says: str) -> None:
    (problem,) = problems(text)
    assert f"vips[0].syn_defence.{where}: {says}" in problem


def test_udp_has_no_syns() -> None:
    (problem,) = problems(
        defended("").replace("    look_ahead", "    protocol: udp\n    look_ahead", 1).replace("cclb4", "hash", 1)
    )
    assert "vips[0].syn_defence: VIP shop uses UDP, which has no SYNs: remove it" in problem


async def test_older_key_seals_and_defence_is_reported(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        await controller.apply(edited(config_file, partial(_defended, "mode: always")))
        state = await installed(controller)
        vip_id = state[Key("vip.vip4", (int(IPv4Address("203.0.113.10")), 6, 80))].params[0]
        assert state[Key(syn_defence.VIP, (vip_id,))] == Action("answer", (1460, 1))
        (old,) = controller.config.cookie_keys
        await controller.apply(edited(config_file, lambda text: edit.rotate_key(text, config_file.parent)))
        state = await installed(controller)
        assert state[Key(syn_defence.ACTIVE_KEY, ())] == Action("set_active_key", (old.epoch,))
        assert {key.match for key in state if key.table == syn_defence.SECRETS} == {(0,), (1,)}
        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert status["vips"][0]["syn_defence"] == {
            "mode": "always",
            "answering": True,
            "threshold": 10_000,
            "hold": 60.0,
            "packets": {"passed": 0, "answered": 0, "completed": 0, "refused": 0},
        }
        # A reading each second needs no table: the controller knows the ids of the VIPs.
        with monkeypatch.context() as patched:
            patched.setattr(session, "read_tables", None)
            assert controller.vip_ids is not None
            assert controller.vip_ids["shop"] == vip_id
            syns = await read_syns(session, pipeline.schema, controller.config, controller.vip_ids)
            assert syns["shop"]["answered"].packets == 0
        await controller.apply(edited(config_file, lambda text: texts.replaced(text, "    syn_defence: {mode: always}\n", "")))
        after = await installed(controller)
        assert {key for key in after if key.table in syn_defence.TABLES} == {
            key for key in before if key.table in syn_defence.TABLES
        }


def _defended(fields: str, text: str) -> str:
    return defended(fields, text)

# SPDX-License-Identifier: Apache-2.0
"""Plans of a running controller are what it then writes, and undo restores the switch."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from frontage.api.client import Client, local
from frontage.changes import verbs
from frontage.config import edit
from frontage.config.vips import Policy, ServerState
from frontage.p4.entries import Key, State
from frontage.p4.shown import is_secret
from frontage.service.daemon import Service
from frontage.state.blocks import second_hop
from live import LIMIT, installed, installed_service, only

PAIRS = 1000 if os.environ.get("LONG") else 25
"""Random pairs of configurations, each with one plan."""
PLANS_PER_UNDO = 5


async def state(service: Service) -> State:
    """Return what is installed, without the earlier servers of connections without a cookie, which every change adds to."""
    found = await installed(only(service))
    return {key: action for key, action in found.items() if key.table != second_hop.OTHERS}


def changed(draw: random.Random, text: str, number: int) -> str:
    """Return the configuration with one to three random changes."""
    for _ in range(draw.randint(1, 3)):
        names = [line.split()[2] for line in text.splitlines() if line.startswith("  - name: web")]
        name = draw.choice(names)
        kind = draw.randrange(7)
        if kind == 0 and len(names) < 40:
            last = draw.randint(20, 250)
            vip, address = draw.choice([("shop", f"10.0.0.{last}"), ("shop6", f"2001:db8:2::{last:x}")])
            port = 1024 + number * 8 + draw.randrange(8)
            text = edit.add_server(text, name=f"web{number}-{last}-{port}", vip=vip, address=address, port=port)
        elif kind == 1 and len(names) > 3:
            text = edit.remove_server(text, name)
        elif kind == 2:
            text = edit.set_server_state(text, name, draw.choice(list(ServerState)))
        elif kind == 3:
            text = edit.set_server_weight(text, name, draw.randint(1, 8))
        elif kind == 4:
            text = edit.set_policy(text, "shop", draw.choice(list(Policy)), draw.choice([0.25, 0.5, 0.75]))
        elif kind == 5:
            text = text.replace("idle_timeout: 120", "idle_timeout: 60") if draw.random() < 0.5 else text
        else:
            text = edit.set_policy(text, "shop6", draw.choice([Policy.HASH, Policy.CCLB4, Policy.CHEETAH_RR]))
    return text


async def check_pair(service: Service, client: Client, text: str, before: State) -> State:
    """Plan and apply a configuration, compare, and return the state of the switch, which was ``before``."""
    planned = (await client.send("POST", "/plans", {"text": text, "entries": True})).body
    switch = planned["switches"]["switch"]
    await client.send("POST", "/plans/apply", planned)
    after = await installed(only(service))
    different = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    written = {_named(key): after.get(key) for key in different}
    assert written.keys() == {_update_key(update) for update in switch["updates"]}
    for update in switch["updates"]:
        action = written[_update_key(update)]
        if update["action"] is None or action is None:
            assert update["action"] is action is None
            continue
        assert (action.name, action.meter) == (update["action"], update["meter"] and tuple(update["meter"]))
        assert update["params"] == (None if is_secret(update["table"]) else list(action.params))
    return after


def _update_key(update: dict[str, Any]) -> tuple[str, str]:
    return update["table"], json.dumps(update["match"])


def _named(key: Key) -> tuple[str, str]:
    return key.table, json.dumps(list(key.match))


@pytest.mark.timeout(7200 if os.environ.get("LONG") else 300)
async def test_plans_are_what_apply_writes(config_file: Path) -> None:
    draw = random.Random(20)
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        state_now = await installed(only(service))
        for number in range(0, PAIRS, PLANS_PER_UNDO):
            text = config_file.read_text()
            last = (await client.send("GET", "/history?limit=1")).body[0]["number"]
            for one in range(number, number + PLANS_PER_UNDO):
                state_now = await check_pair(service, client, changed(draw, config_file.read_text(), one), state_now)
                print(f"{one + 1} pairs", flush=True)
            newest = (await client.send("GET", "/history?limit=1")).body[0]["number"]
            if newest > last and draw.random() < 0.5:
                await client.send("POST", f"/history/{last + 1}/undo")
                assert config_file.read_text() == text
                state_now = await installed(only(service))  # nothing differs from the configuration


async def test_undo_restores_the_switch(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        before = await state(service)
        text = edit.set_policy(edit.remove_server(config_file.read_text(), "web2"), "shop", Policy.CHEETAH_RR)
        planned = (await client.send("POST", "/plans", {"text": text})).body
        number = (await client.send("POST", "/plans/apply", planned)).body["number"]
        assert await state(service) != before
        await client.send("POST", f"/history/{number}/undo")
        assert await state(service) == before


async def test_plans_show_no_key_material(config_file: Path) -> None:
    async with installed_service(config_file) as service, local(service.control.path, LIMIT) as client:
        text = verbs.rotate_key(config_file.parent).edit(config_file.read_text())
        planned = (await client.send("POST", "/plans", {"text": text, "entries": True})).body
        updates = planned["switches"]["switch"]["updates"]
        secret = [update for update in updates if is_secret(update["table"])]
        assert len(secret) > 1000
        assert {update["params"] for update in secret} == {None}
        assert all(update["params"] is not None for update in updates if not is_secret(update["table"]))

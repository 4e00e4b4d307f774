# SPDX-License-Identifier: Apache-2.0
"""Plans: the difference between configurations in the terms of operators."""

from __future__ import annotations

import pytest

from conftest import EXAMPLE
from frontage.changes import plan
from frontage.changes.plan import Effect, Field, Step
from frontage.config import edit, loads
from frontage.config.vips import Policy, ServerState
from texts import replaced

TEXT = EXAMPLE.read_text()


def steps(after: str, before: str = TEXT) -> list[Step]:
    return plan.steps(loads(before, EXAMPLE), loads(after, EXAMPLE))


def only(after: str) -> Step:
    (step,) = steps(after)
    return step


def test_nothing_changes() -> None:
    assert steps(TEXT) == []
    assert steps(TEXT + "\n# a comment\n") == []
    assert plan.worst([]) is Effect.NONE


def test_draining_changes_new_connections_only() -> None:
    step = only(edit.set_server_state(TEXT, "web2", ServerState.DRAINING))
    assert (step.action, step.kind, step.name, step.effect) == ("change", "server", "web2", Effect.NEW)
    assert step.fields == (Field("state", "active", "draining"),)


def test_removal_breaks_connections() -> None:
    found = steps(edit.remove_server(TEXT, "web2"))
    assert [(step.action, step.name, step.effect) for step in found] == [("remove", "web2", Effect.BREAKS)]
    assert plan.worst(found) is Effect.BREAKS


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ("address: 203.0.113.10", "address: 203.0.113.99", Effect.BREAKS),
        ("alpha: 0.5", "alpha: 0.25", Effect.NEW),
    ],
)
def test_effects_of_fields_of_vips(old: str, new: str, effect: Effect) -> None:
    found = steps(TEXT.replace(old, new, 1))
    assert [(step.kind, step.effect) for step in found] == [("VIP", effect)]


def test_policy() -> None:
    step = only(edit.set_policy(TEXT, "shop", Policy.HASH))
    assert step.fields == (Field("policy", "cclb4", "hash"),)


def test_secrets_are_not_shown() -> None:
    rotated = edit.rotate_key(TEXT, EXAMPLE.parent)
    assert [(step.action, step.kind, step.name) for step in steps(rotated)] == [("add", "key", "2")]
    secret = str(loads(TEXT, EXAMPLE).cookie_keys[0].secret.hex())
    assert secret in TEXT
    assert only(TEXT.replace(secret, "ff" + secret[2:])).fields == (Field("secret", "(secret)", "(secret)"),)


def test_sections() -> None:
    step = only(TEXT.replace("idle_timeout: 120", "idle_timeout: 60"))
    assert (step.kind, step.name, step.fields) == ("section", "fallback", (Field("idle_timeout", "120", "60"),))


def test_locations_of_sites_change_no_connection() -> None:
    file = EXAMPLE.with_name("artemis.yaml")
    text = file.read_text()

    def change(old: str, new: str) -> Step:
        (step,) = plan.steps(loads(text, file), loads(replaced(text, old, new), file))
        return step

    step = change("latitude: 50.1", "latitude: 48.1")
    assert (step.kind, step.name, step.effect, step.why) == ("site", "1", Effect.NONE, "")
    assert step.fields == (Field("location.latitude", "50.1", "48.1"),)
    step = change("    location: { latitude: 35.7, longitude: 139.7 }\n", "")
    assert (step.effect, step.fields) == (Effect.NONE, (Field("location", "latitude 35.7, longitude 139.7", None),))
    assert change("sids: [800, 1599]", "sids: [800, 1600]").effect is Effect.SOME


def test_vips_without_active_servers() -> None:
    text = TEXT
    config = loads(text, EXAMPLE)
    assert plan.without_servers(config) == []
    for server in config.servers:
        if server.vip == "shop" and server.active:
            text = edit.set_server_state(text, server.name, ServerState.DRAINING)
    assert plan.without_servers(loads(text, EXAMPLE)) == ["shop"]

# SPDX-License-Identifier: Apache-2.0
"""Limits in the configuration file: errors of place, fault and fix, defaults, and the entries in a switch."""

from __future__ import annotations

import io
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from rich.console import Console

import texts
from conftest import EXAMPLE
from frontage.cli.show import render
from frontage.config import Config, load, loads
from frontage.p4.entries import Action, Key, State
from frontage.service.status import merge, read_status
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import limits
from frontage.state.desired import desired
from live import connected, edited, installed, running

FILE = Path("demo.yaml")
VIP = "    look_ahead: 65536              # bytes; for information only\n"
BASE = EXAMPLE.read_text(encoding="utf-8")
PREFIX = int(IPv4Address("198.51.100.0"))
problems = partial(texts.problems, file=FILE)


def limited(fields: str, base: str = BASE) -> str:
    """Return the example with limits of the VIP shop."""
    return texts.replaced(base, VIP, f"{VIP}    limits: {{{fields}}}\n")


def clients(*items: str) -> str:
    return limited("clients: [" + ", ".join(f"{{{item}}}" for item in items) + "]")


def wanted(config: Config) -> State:
    return desired(config, allocate(config, Installed({})))


def meters(state: State) -> dict[tuple[str, object], tuple[int, int] | None]:
    """Return the meters by table and client prefix."""
    return {(key.table, key.match[1:]): action.meter for key, action in state.items() if key.table in limits.TABLES}


def test_bursts_have_defaults() -> None:
    config = loads(limited("new_connections: 2000, bandwidth: 100mbit"), FILE)
    assert meters(wanted(config)) == {
        (limits.CONNECTIONS, ()): (2000, 2000),
        (limits.BYTES, ()): (12_500_000, 1_250_000),
    }
    small = loads(limited("bandwidth: 1mbit, new_connections: 5, connection_burst: 7"), FILE)
    assert meters(wanted(small)) == {(limits.CONNECTIONS, ()): (5, 7), (limits.BYTES, ()): (125_000, 65536)}
    assert meters(wanted(loads(BASE, FILE))) == {}


def test_each_part_of_a_prefix_has_an_entry() -> None:
    config = loads(
        clients("prefix: 198.51.100.0/24, each: 26, new_connections: 10", "prefix: 198.51.0.0/16, bandwidth: 8kbit"), FILE
    )
    assert meters(wanted(config)) == {
        **{(limits.CONNECTIONS_BY_CLIENT[4], ((PREFIX + 64 * i, 26),)): (10, 10) for i in range(4)},
        (limits.BYTES_BY_CLIENT[4], ((int(IPv4Address("198.51.0.0")), 16),)): (1000, 65536),
    }


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (limited("bandwidth: 100"), "limits.bandwidth", 'invalid bandwidth "100": must be a whole number with a unit (kbit, mbit'),
        (limited("bandwidth: 1kbit"), "limits.bandwidth", 'invalid bandwidth "1kbit": must be 8kbit to 10tbit: give the largest'),
        (limited("new_connections: 0"), "limits.new_connections", '"0" is below the minimum of 1: give the largest rate'),
        (limited("connection_burst: 5"), "limits", "connection_burst needs new_connections"),
        (limited("bandwidth_burst: 5000"), "limits", "bandwidth_burst needs bandwidth"),
        (limited("rate: 5"), "limits.rate", 'unknown key "rate": remove it or use one of: new_connections, connection_burst'),
        (clients("prefix: 198.51.100.0/24"), "limits.clients[0]", "needs new_connections or bandwidth"),
        (
            clients("prefix: 198.51.100.0/24, each: 20, new_connections: 1"),
            "limits.clients[0]",
            "each must be 24 to 32 for this prefix",
        ),
        (
            clients('prefix: "2001:db8::/32", new_connections: 1'),
            "limits.clients[0].prefix",
            "2001:db8::/32 is IPv6, but VIP shop (203.0.113.10) is IPv4: use an IPv4 prefix",
        ),
        (
            clients("prefix: 10.0.0.0/8, each: 24, new_connections: 1"),
            "limits.clients[0].prefix",
            "65536 client prefixes with limits of one kind: use at most 4096",
        ),
        (
            clients("prefix: 198.51.100.0/24, each: 25, new_connections: 1", "prefix: 198.51.100.128/25, bandwidth: 1mbit"),
            "limits.clients[1].prefix",
            "another limit of VIP shop is for the same prefix: remove one of them",
        ),
    ],
)
def test_errors_have_place_fault_and_fix(text: str, where: str, says: str) -> None:
    (problem,) = problems(text)
    assert f"vips[0].{where}: {says}" in problem


async def test_limits_change_without_other_writes(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        fields = "new_connections: 50, clients: [{prefix: 198.51.100.0/24, each: 31, bandwidth: 1mbit}]"
        writes = controller.health.writes.total()
        await controller.apply(edited(config_file, partial(limited_in, fields)))
        state = await installed(controller)
        assert controller.health.writes.total() == writes + 1 + 128
        vip_id = state[Key("vip.vip4", (int(IPv4Address("203.0.113.10")), 6, 80))].params[0]
        assert state[Key(limits.CONNECTIONS, (vip_id,))] == Action("limit_vip_connections", meter=(50, 50))

        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert status["difference"]["missing"] == status["difference"]["different"] == status["difference"]["unexpected"] == 0
        (shop, *others) = status["vips"]
        assert shop["limits"]["connections"] == {"rate": 50, "dropped": {"packets": 0, "bytes": 0}}
        assert shop["limits"]["client-bandwidth"] == {"prefixes": 128, "dropped": {"packets": 0, "bytes": 0}}
        assert all(vip["limits"] is None for vip in others)
        console = Console(file=io.StringIO(), width=160)
        state_of_controller = {"phase": "installed", "role": None, "error": None}
        whole = merge(controller.config, {controller.config.device.name: status | {"controller": state_of_controller}})
        whole["controller"]["config_error"] = None
        render(console, whole)
        assert "50 connections" in console.file.getvalue()  # type: ignore[attr-defined]

        # A change of a rate modifies one entry, and no other.
        await controller.apply(edited(config_file, lambda text: texts.replaced(text, "new_connections: 50", "new_connections: 60")))
        assert controller.health.writes.total() == writes + 1 + 128 + 1
        await controller.apply(
            edited(config_file, lambda text: texts.replaced(text, f"    limits: {{{fields.replace('50', '60', 1)}}}\n", ""))
        )
        assert await installed(controller) == before


def limited_in(fields: str, text: str) -> str:
    return limited(fields, text)

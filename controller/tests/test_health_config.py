# SPDX-License-Identifier: Apache-2.0
"""Health checks in the configuration file: errors of place, fault and fix, defaults, and the entries of the checker."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address
from pathlib import Path

import pytest

import texts
from conftest import EXAMPLE
from frontage.config import Config, loads
from frontage.config.health import CheckKind, FailMode
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import checker
from frontage.state.desired import STAGES, desired

FILE = Path("demo.yaml")
CHECKER = """\
health:
  port: uplink
  addresses: [192.0.2.250, "2001:db8:1::250"]
"""
NEIGHBORS = """\
neighbors:
  - { address: 192.0.2.250, port: uplink, mac: "02:00:00:00:02:fa" }
  - { address: "2001:db8:1::250", port: uplink, mac: "02:00:00:00:02:fa" }
"""
VIP = "    look_ahead: 65536              # bytes; for information only\n"
BASE = texts.replaced(EXAMPLE.read_text(encoding="utf-8"), "neighbors:\n", NEIGHBORS) + CHECKER
problems = partial(texts.problems, file=FILE)


def checked(fields: str, base: str = BASE) -> str:
    """Return the example with a health check of the VIP shop."""
    return texts.replaced(base, VIP, f"{VIP}    health: {{{fields}}}\n")


def load(text: str) -> Config:
    return loads(text, FILE)


def wanted(config: Config) -> State:
    return desired(config, allocate(config, Installed({})))


def test_defaults() -> None:
    check = load(checked("")).vips[0].health
    assert check is not None
    assert (check.kind, check.interval, check.timeout, check.rise, check.fall) == (CheckKind.TCP, 2, 1, 2, 3)
    assert check.fail_mode is FailMode.OPEN
    assert list(check.statuses)[::199] == [200, 399]
    assert load(BASE).vips[0].health is None


def test_single_status_is_a_range() -> None:
    check = load(checked("kind: http, status: '204'")).vips[0].health
    assert check is not None
    assert list(check.statuses) == [204]


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (checked("kind: udp"), "vips[0].health.kind", 'unknown kind "udp": use one of tcp, http, https, http3, grpc, script'),
        (checked("intervall: 2"), "vips[0].health.intervall", 'unknown key "intervall": remove it or use one of: kind, interval'),
        (checked("rise: 0"), "vips[0].health.rise", '"0" is below the minimum of 1: give the consecutive passed checks'),
        (checked("kind: http, status: 200-"), "vips[0].health.status", 'invalid value "200-": give the HTTP status codes'),
        (
            checked("kind: http, status: 299-200"),
            "vips[0].health.status",
            'invalid range of status codes "299-200": the last is below the first: give the HTTP status codes of a healthy server',
        ),
        (checked("kind: http, path: health"), "vips[0].health.path", 'invalid value "health": give the path of an HTTP request'),
        (checked("path: /health"), "vips[0].health.path", 'unknown key "path" for tcp: remove it, or use another kind'),
        (checked("kind: http, verify: false"), "vips[0].health.verify", 'unknown key "verify" for http: remove it'),
        (checked("kind: http3"), "vips[0].health.kind", "VIP shop uses TCP, but http3 checks need UDP: use http or https"),
        (checked("kind: script"), "vips[0].health.kind", "a script check needs a program: add `command`"),
        (checked("kind: grpc, status: '200'"), "vips[0].health.status", 'unknown key "status" for grpc: remove it'),
        (
            checked("interval: 0.5"),
            "vips[0].health.interval",
            "the timeout of 1 s is above the interval of 0.5 s: use a timeout up to the interval",
        ),
        (checked("timeout: 3"), "vips[0].health.timeout", "the timeout of 3 s is above the interval of 2 s"),
        (
            checked("", BASE.replace(CHECKER, "")),
            "vips[0].health",
            "health checks need a checker: add the section `health` with `port` and `addresses`",
        ),
        (
            checked("", BASE.replace('[192.0.2.250, "2001:db8:1::250"]', '["2001:db8:1::250"]')),
            "vips[0].health",
            "VIP shop is IPv4, but the checker has no IPv4 address: add one to `addresses` of `health`",
        ),
        (BASE.replace("port: uplink\n  addr", "port: up\n  addr"), "health.port", 'unknown port "up": use one of `ports`: rack'),
        (BASE.replace("[192.0.2.250, ", "[10.0.0.11, "), "health.addresses[0]", "10.0.0.11 is the address of server web1: use"),
        (BASE.replace("[192.0.2.250, ", "[192.0.2.1, "), "health.addresses[0]", "192.0.2.1 is a gateway of port uplink: use"),
        (
            BASE.replace("port: uplink\n  addr", "port: rack\n  addr"),
            "health.addresses[0]",
            "no route to 192.0.2.250 through port rack: add the address to `neighbors`, or a prefix",
        ),
        (
            BASE.replace('gateways: [192.0.2.1/24, "2001:db8:1::1/64"]', 'gateways: ["2001:db8:1::1/64"]'),
            "health.addresses[0]",
            "port uplink has no IPv4 gateway, which the checker pings: add one to the port's `gateways`",
        ),
        (
            BASE.replace("[192.0.2.250, ", "[198.51.100.9, 192.0.2.250, "),
            "health.addresses",
            "has 3 items, at most 2 are allowed",
        ),
        (BASE.replace(', "2001:db8:1::250"]', ", 198.51.100.9]"), "health.addresses[1]", "two IPv4 addresses: keep one"),
        (
            BASE.replace("role: client", "role: site"),
            "health.port",
            "port uplink has role 'site', but the checker is a client of the services: use a port of role",
        ),
    ],
)
def test_invalid_file_is_rejected(text: str, where: str, says: str) -> None:
    lines = [line for line in problems(text) if f" {where}: " in line]
    assert lines and any(says in line for line in lines), problems(text)


def test_quic_services_have_no_tcp_checks() -> None:
    quic = EXAMPLE.with_name("quic.yaml").read_text(encoding="utf-8")
    text = texts.replaced(quic, "    protocol: udp\n", "    protocol: udp\n    health: {kind: http}\n")
    assert any("uses UDP, but http checks need TCP: use http3 or script" in line for line in problems(text))


def test_entries_of_the_checker() -> None:
    config = load(checked(""))
    state = wanted(config)
    four, six = int(ip_address("192.0.2.250")), int(ip_address("2001:db8:1::250"))
    assert {key: action for key, action in state.items() if key.table in checker.TABLES} == {
        Key(checker.SOURCE4, (1, four)): Action("is_check"),
        Key(checker.SOURCE6, (1, six)): Action("is_check"),
        Key(checker.DESTINATION4, (four,)): Action("is_check"),
        Key(checker.DESTINATION6, (six,)): Action("is_check"),
    }
    assert set(checker.TABLES) <= {table for stage in STAGES for table in stage}
    assert not any(key.table in checker.TABLES for key in wanted(load(BASE.replace(CHECKER, ""))))

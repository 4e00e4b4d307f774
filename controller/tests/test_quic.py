# SPDX-License-Identifier: Apache-2.0
"""QUIC services: checks of the file, and the entries for their servers."""

from __future__ import annotations

from functools import partial
from ipaddress import IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import QUIC_EXAMPLE as EXAMPLE
from conftest import ROOT
from frontage.config import Config, ConfigError, load, loads
from frontage.config.edit import rotate_key
from frontage.config.vips import Protocol
from frontage.cookie import CookieKey, Ip6Cookie
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import handshake, masking, unseal, vip
from frontage.state.desired import desired
from texts import problems, replaced

TEXT = EXAMPLE.read_text(encoding="utf-8")


def wanted(config: Config) -> State:
    return desired(config, allocate(config, Installed({})))


CONFIG = load(EXAMPLE)
STATE = wanted(CONFIG)


edited = partial(replaced, TEXT)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (edited("protocol: udp ", "protocol: quic "), "vips[0].protocol", 'unknown protocol "quic": use '),
        (edited(":c00c:1e::/64", ":c00c:1e::/60"), "vips[0].cookie_prefix", "host bits are set"),
        (edited(":c00c:1e::/64", ":c00c::/48"), "vips[0].cookie_prefix", "not an IPv6 /64"),
        (
            edited("    policy: cheetah-rr  ", "    cookie_prefix: '2001:db8:c::/64'\n    policy: cheetah-rr  "),
            "vips[1].cookie_prefix",
            "VIP films-v4 uses UDP over IPv4, but cookie addresses need UDP over IPv6: remove it",
        ),
        (
            edited("    policy: cheetah-rr  ", "    policy: cclb4  "),
            "vips[1].policy",
            "which QUIC over IPv4 cannot carry: use hash",
        ),
        (edited("    policy: cheetah-rr  ", "    # "), "vips[1].policy", "cclb4 needs the loads that servers report"),
        (edited("policy: cclb4\n", "policy: cheetah-ll\n"), "vips[0].policy", "cheetah-ll counts FIN and RST"),
        (
            edited("2001:db8:a:2::10", "2001:db8:a:1::11"),
            "servers[1].address",
            "two servers send from 2001:db8:a:1::/64 UDP port 8443: move one of them",
        ),
        (
            edited("2001:db8:a:2::10", "2001:db8:c00c:1e::10"),
            "servers[1].address",
            "2001:db8:c00c:1e::10 is in a cookie prefix: use an address outside of it",
        ),
        (
            edited("2001:db8:a:2::/64", "2001:db8:a:2::/112"),
            "servers[1].address",
            "no route to 2001:db8:a:2::/64 on the server side, where this server has its cookie addresses: add the prefix",
        ),
        (edited("timeout: 10 ", "timeout: 0 "), "handshake.timeout", '"0" is below the minimum of 1'),
    ],
)
def test_error_has_field_problem_and_fix(text: str, where: str, says: str) -> None:
    said = problems(text, Path("quic.yaml"))
    assert len([line for line in said if f": {where}: " in line and says in line]) == 1, said


def test_shared_cookie_prefix_is_rejected() -> None:
    second = "  - name: films2\n    address: '2001:db8:ffff::21'\n    protocol: udp\n    port: 443\n    policy: hash\n"
    second += "    cookie_prefix: '2001:db8:c00c:1e::/64'\n"
    with pytest.raises(ConfigError, match=r"duplicate cookie prefix 2001:db8:c00c:1e::/64 with port 443: give every service"):
        loads(edited("  - name: films-v4\n", second + "  - name: films-v4\n"), Path("quic.yaml"))


def test_tcp_and_udp_services_can_share_an_address() -> None:
    web = "  - name: web\n    address: '2001:db8:ffff::20'\n    port: 443\n"
    server = "  - { name: web1, vip: web, address: '2001:db8:a:1::10', port: 8443, sid: 9 }\n"
    text = edited("  - name: films-v4\n", web + "  - name: films-v4\n").replace("servers:\n", "servers:\n" + server, 1)
    state = wanted(loads(text, EXAMPLE))
    address = int(IPv6Address("2001:db8:ffff::20"))
    ids = {state[Key(vip.VIP6, (address, protocol.number, 443))].params for protocol in Protocol}
    assert len(ids) == 2
    assert state[Key(vip.DIP6, (int(IPv6Address("2001:db8:a:1::10")), 8443))].params[0] == 9


def test_server_is_matched_by_its_network() -> None:
    key = Key(vip.QUIC_DIP6, (0x20010DB8000A0001, 8443))
    params = STATE[key].params
    assert params[0] == 1
    assert params[-2:] == (0x10, 0x20010DB8C00C001E)
    assert Key(vip.DIP4, (0x0A00000B, 17, 8443)) in STATE
    assert STATE[Key(vip.COOKIE_ADDRESS, (0x20010DB8C00C001E, 443))] == Action("set_cookie_address", STATE[vip6_key()].params)
    assert STATE[Key(vip.COOKIE_PREFIX, (0x20010DB8C00C001E,))] == Action("no_service")


def vip6_key() -> Key:
    return Key(vip.VIP6, (int(IPv6Address("2001:db8:ffff::20")), 17, 443))


def test_handshake_timeout_is_that_of_the_file() -> None:
    assert STATE[Key(handshake.TIMEOUT, ())] == Action("set_timeout", (10,))


def test_static_cookies_are_sealed_with_every_key() -> None:
    key = CONFIG.cookie_keys[0]
    for sid in (1, 2):
        (interface_id,) = STATE[Key(masking.STATIC_COOKIE, (key.epoch, sid))].params
        assert key.open_ip6(interface_id) == Ip6Cookie(sid)
    assert sum(entry.table == masking.STATIC_COOKIE for entry in STATE) == 2  # none over IPv4


def open_word(state: State, word: int) -> int:
    """Open the lower 60 of 64 bits like ``cookie6.p4``."""
    epoch, left, right = word >> 60 & 1, word >> 28 & 0xFFFFFFFF, word & 0xFFFFFFF
    for i, tables in enumerate(unseal.ROUNDS):
        source = left if i % 2 == 0 else right
        mixed = 0
        for table, byte in zip(tables, source.to_bytes(4, "big"), strict=True):
            mixed ^= state[Key(table, (epoch, byte))].params[0]
        left, right = (left, right ^ mixed) if i % 2 == 0 else (left ^ mixed, right)
    return left << 28 | right


@given(st.integers(0, 4095), st.integers(1, (1 << 24) - 1), st.binary(min_size=3, max_size=3))
def test_program_opens_words_sealed_by_the_specification(sid: int, nonce: int, random: bytes) -> None:
    key = CONFIG.cookie_keys[0]
    assert open_word(STATE, key.seal_ip6(Ip6Cookie(sid))) == sid << 44
    cid = key.seal_cid(sid, nonce, random)
    assert open_word(STATE, int.from_bytes(cid[1:9], "big")) == sid << 44 | nonce << 20


def test_rotation_keeps_cookies_of_the_previous_key_valid(tmp_path: Path) -> None:
    file = tmp_path / "quic.yaml"
    file.write_text(TEXT)
    config = loads(rotate_key(TEXT, tmp_path), file)
    old, new = config.cookie_keys
    assert isinstance(new, CookieKey)
    state = wanted(config)
    for key in (old, new):
        assert open_word(state, key.seal_ip6(Ip6Cookie(2))) == 2 << 44
        assert state[Key(masking.STATIC_COOKIE, (key.epoch, 2))].params == (key.seal_ip6(Ip6Cookie(2)),)
    assert all(state[entry] == action for entry, action in STATE.items() if entry.table in unseal.TABLES)


def test_configuration_without_quic_has_no_unseal_entries() -> None:
    demo = wanted(load(ROOT / "controller" / "examples" / "demo.yaml"))
    assert not {entry.table for entry in demo} & {*unseal.TABLES, masking.STATIC_COOKIE}

# SPDX-License-Identifier: Apache-2.0
"""Edits of configuration files: one thing changes, all other bytes stay."""

from __future__ import annotations

import difflib
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import EXAMPLE
from frontage.config import ConfigError, edit, loads
from frontage.config.vips import Policy, ServerState

TEXT = EXAMPLE.read_text(encoding="utf-8")
FLOW = """\
device: {address: "localhost:1", cpu_port: 510, pipeline: {p4info: a, json: b}}
ports: [{id: 1, name: p, role: server, mac: "02:00:00:00:00:01"}]
routes: [{prefix: 0.0.0.0/0, port: p, mac: "02:00:00:00:00:02"}]
vips: [{name: shop, address: 192.0.2.1, port: 80}]   # the shop
servers: [{name: a, vip: shop, address: 10.0.0.1, port: 80, sid: 1}, {name: b, vip: shop, address: 10.0.0.2, port: 80, sid: 2}]
keys: [{id: 7, secret: 000102030405060708090a0b0c0d0e0f}]
"""
DASHES = """\
device: {address: "localhost:1", cpu_port: 510, pipeline: {p4info: a, json: b}}
ports:
- {id: 1, name: p, role: server, mac: "02:00:00:00:00:01"}
routes:
- {prefix: 0.0.0.0/0, port: p, mac: "02:00:00:00:00:02"}
vips:
-
  name: shop
  address: 192.0.2.1
  port: 80

# all of them
servers:
# the first
- {name: a, vip: shop, address: 10.0.0.1, port: 80, sid: 1}  # one
# the second
- {name: b, vip: shop, address: 10.0.0.2, port: 80, sid: 2}
# the last word
keys:
- id: 7
  secret: 000102030405060708090a0b0c0d0e0f"""


def changed(before: str, after: str) -> list[str]:
    loads(after, Path("x.yaml"))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def add(text: str, name: str = "web5", address: str = "10.0.0.11", vip: str = "shop", port: int = 8081) -> str:
    return edit.add_server(text, name=name, vip=vip, address=address, port=port)


def test_add_server() -> None:
    assert changed(TEXT, add(TEXT)) == [
        "+  - name: web5",
        "+    vip: shop",
        "+    address: 10.0.0.11",
        "+    port: 8081",
        "+    sid: 6",
    ]
    assert changed(FLOW, add(FLOW))[-1].endswith("sid: 2}, { name: web5, vip: shop, address: 10.0.0.11, port: 8081, sid: 3 }]")
    assert changed(DASHES, add(DASHES)) == ["+- { name: web5, vip: shop, address: 10.0.0.11, port: 8081, sid: 3 }"]


def test_added_ipv6_address_is_quoted() -> None:
    text = add(TEXT, vip="shop6", address="2001:db8:2::b")
    assert '+    address: "2001:db8:2::b"' in changed(TEXT, text)


def test_add_first_server() -> None:
    empty = edit.remove_server(edit.remove_server(DASHES, "a"), "b")
    assert "servers: []" in empty
    assert loads(add(empty), Path("x")).servers[0].sid == 1
    without = "\n".join(line for line in FLOW.splitlines() if not line.startswith("servers"))
    assert loads(add(without), Path("x")).servers[0].name == "web5"
    null = FLOW.replace("servers: [", "servers:\n#").replace("#{", "# {")
    assert loads(add(null), Path("x")).servers[0].name == "web5"


def test_set_server_state() -> None:
    assert changed(TEXT, edit.set_server_state(TEXT, "web4", ServerState.ACTIVE)) == [
        "-    state: draining                # keeps its connections, gets no new ones",
        "+    state: active                # keeps its connections, gets no new ones",
    ]
    assert changed(TEXT, edit.set_server_state(TEXT, "web3", ServerState.DRAINING)) == ["+    state: draining"]
    assert changed(DASHES, edit.set_server_state(DASHES, "a", ServerState.DRAINING)) == [
        "-- {name: a, vip: shop, address: 10.0.0.1, port: 80, sid: 1}  # one",
        "+- {name: a, vip: shop, address: 10.0.0.1, port: 80, sid: 1, state: draining}  # one",
    ]


def test_remove_server() -> None:
    assert changed(TEXT, edit.remove_server(TEXT, "web2")) == [
        "-  - name: web2",
        "-    vip: shop",
        "-    address: 10.0.0.12",
        "-    port: 8080",
        "-    sid: 2",
    ]
    last = edit.remove_server(TEXT, "web1-v6")
    assert "# Replace the example secret" in last
    assert len(changed(TEXT, last)) == 5
    assert changed(DASHES, edit.remove_server(DASHES, "b")) == ["-- {name: b, vip: shop, address: 10.0.0.2, port: 80, sid: 2}"]
    assert "servers: [{name: b, vip: shop, address: 10.0.0.2, port: 80, sid: 2}]" in edit.remove_server(FLOW, "a")
    assert "servers: [{name: a, vip: shop, address: 10.0.0.1, port: 80, sid: 1}]" in edit.remove_server(FLOW, "b")


def test_set_policy() -> None:
    assert changed(TEXT, edit.set_policy(TEXT, "shop", Policy.HASH)) == [
        "-    policy: cclb4                  # hash, cheetah-rr, cheetah-ll, cclb4, cclb4-current, cclb4-future",
        "+    policy: hash                  # hash, cheetah-rr, cheetah-ll, cclb4, cclb4-current, cclb4-future",
    ]
    assert changed(DASHES, edit.set_policy(DASHES, "shop", Policy.CCLB4, 0.25)) == ["+  policy: cclb4", "+  alpha: 0.25"]


@pytest.mark.parametrize("text", [TEXT, FLOW, DASHES], ids=["blocks", "flow", "dashes"])
def test_rotate_key(text: str) -> None:
    first = loads(text, Path("x")).cookie_keys[-1]
    once = edit.rotate_key(text, Path())
    twice = edit.rotate_key(once, Path())
    keys = loads(once, Path("x")).cookie_keys
    assert keys[0] == first
    assert keys[1].id == first.id + 1
    assert len(keys[1].secret) == 32
    after = loads(twice, Path("x")).cookie_keys
    assert after[0] == keys[1]
    assert after[1].id == first.id + 2
    assert after[1].secret != keys[1].secret


def test_rotate_key_with_secret_files(tmp_path: Path) -> None:
    (tmp_path / "key-7.hex").write_text("00" * 16)
    text = FLOW.replace("secret: 000102030405060708090a0b0c0d0e0f", "secret_file: key-7.hex")
    config = loads(edit.rotate_key(text, tmp_path), tmp_path / "x.yaml")
    assert config.keys[1].secret_file == tmp_path / "key-8.hex"
    assert stat.S_IMODE((tmp_path / "key-8.hex").stat().st_mode) == 0o600


def test_rejected_edit_leaves_the_file_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(TEXT)
    refused = [
        (lambda text: edit.remove_server(text, "web9"), edit.EditError, 'unknown server "web9": use one of: web1, web2'),
        (lambda text: edit.set_policy(text, "none", Policy.HASH), edit.EditError, 'unknown VIP "none"'),
        (lambda text: add(text, name="web1"), edit.EditError, 'duplicate server name "web1"'),
        (lambda text: add(text, vip="none"), ConfigError, 'unknown VIP "none"'),
        (lambda text: add(text, address="10.0.0.11", port=8080), ConfigError, "duplicate server address"),
        (lambda text: add(text, name="a b"), ConfigError, "invalid value"),
        (lambda text: add(text, name='x", sid: 1, vip: "'), ConfigError, "name"),
        (lambda text: add(text, address="nowhere\n"), ConfigError, "address"),
    ]
    for change, kind, says in refused:
        with pytest.raises(kind, match=says):
            edit.change_file(file, change)
        assert file.read_text() == TEXT
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]


def test_edit_keeps_file_mode_and_symbolic_link(tmp_path: Path) -> None:
    file, link = tmp_path / "demo.yaml", tmp_path / "link.yaml"
    file.write_text(TEXT)
    file.chmod(0o640)
    link.symlink_to(file)
    edit.change_file(link, lambda text: edit.set_policy(text, "shop", Policy.HASH))
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "policy: hash" in file.read_text()


def test_concurrent_edits_are_all_applied(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(TEXT)
    threads = [
        threading.Thread(target=edit.change_file, args=(file, lambda text, i=i: add(text, name=f"new{i}", port=9000 + i)))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    config = loads(file.read_text(), file)
    assert {f"new{i}" for i in range(8)} <= {server.name for server in config.servers}


@settings(max_examples=60)
@given(st.sampled_from([TEXT, FLOW, DASHES]), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12))
def test_any_sequence_of_edits_gives_a_valid_file(text: str, steps: list[tuple[int, int]]) -> None:
    for kind, number in steps:
        config = loads(text, Path("x"))
        names = [server.name for server in config.servers]
        if kind == 0 and f"n{number}" not in names:
            text = add(text, name=f"n{number}", address="10.0.0.11", port=9000 + number)
        elif kind == 1 and names:
            text = edit.remove_server(text, names[number % len(names)])
        elif kind == 2 and names:
            text = edit.set_server_state(text, names[number % len(names)], ServerState.DRAINING)
        elif kind == 3:
            text = edit.set_policy(text, "shop", list(Policy)[number % 6], 0.5)
    loads(text, Path("x"))

# SPDX-License-Identifier: Apache-2.0
"""`frontage keys`: the key file for servers, which is written after the switch has the keys."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

from conftest import QUIC_EXAMPLE
from frontage.config import load
from frontage.config.edit import rotate_key
from frontage.cookie import CookieKey
from test_service import command, reconciled, status, until, up


def keys_in(text: str) -> tuple[CookieKey, ...]:
    return tuple(CookieKey(key["id"], bytes.fromhex(key["secret"])) for key in tomllib.loads(text)["keys"])


def test_key_file_has_all_keys_and_is_private(tmp_path: Path) -> None:
    config, file = tmp_path / "quic.yaml", tmp_path / "keys.toml"
    config.write_text(QUIC_EXAMPLE.read_text())
    command("rotate-key", "-c", str(config))
    file.write_text("")
    file.chmod(0o644)
    assert "no controller is running" in command("keys", str(config), "-o", str(file))
    assert keys_in(file.read_text()) == load(config).cookie_keys
    assert len(load(config).cookie_keys) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["keys.toml", "quic.yaml"]


def test_failed_command_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    assert "no such file" in command("keys", str(tmp_path / "none.yaml"), "-o", str(file), code=1)
    assert not file.exists()
    assert "cannot be written" in command("keys", str(QUIC_EXAMPLE), "-o", str(tmp_path / "none" / "keys.toml"), code=1)


def test_keys_are_written_after_the_switch_has_them(quic_file: Path) -> None:
    file = quic_file.with_name("keys.toml")
    first = quic_file.read_text() + 'metrics: { address: "127.0.0.1:0" }\n'
    quic_file.write_text(first)
    with up(quic_file):
        until(lambda: reconciled(quic_file))
        # The controller has not seen this edit yet: the command waits until it is installed.
        quic_file.write_text(rotate_key(first, quic_file.parent))
        command("keys", str(quic_file), "-o", str(file))
        assert [key.id for key in keys_in(file.read_text())] == [key["id"] for key in status(quic_file)["keys"]] == [1, 2]
        before = file.read_text()
        # The controller rejects the older key, which would turn back the clocks of TCP clients: no server gets it.
        quic_file.write_text(first)
        assert "no file written" in command("keys", str(quic_file), "-o", str(file), code=1)
        assert file.read_text() == before

# SPDX-License-Identifier: Apache-2.0
"""The command line and `frontage up`, run as separate processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import EXAMPLE, Switch
from frontage.api.client import RequestError, ask, socket_path
from frontage.config import load

FRONTAGE = [sys.executable, "-m", "frontage"]
LIMIT = 60.0


def command(*words: str, code: int = 0) -> str:
    """Return the output of a command."""
    done = subprocess.run([*FRONTAGE, *words], capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def status(file: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(command("status", "-c", str(file), "--json"))
    return result


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextmanager
def up(file: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    log = file.with_suffix(".log")
    with log.open("ab") as out:
        process = subprocess.Popen([*FRONTAGE, "up", str(file), *options], stdout=out, stderr=out)
    begin = log.stat().st_size
    until(lambda: "metrics at" in log.read_text()[begin:])
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT) == 0, log.read_text()
        print(log.read_text())


def reconciled(file: Path) -> bool:
    found = status(file)
    return bool(found["controller"]["phase"] == "installed" and found.get("difference", {}).get("tables") == {})


@pytest.fixture
def running(config_file: Path) -> Iterator[Path]:
    with up(config_file):
        until(lambda: config_file.with_name(".demo.yaml.sock").exists())
        until(lambda: reconciled(config_file))
        yield config_file


def test_every_command_has_help_with_an_example() -> None:
    commands = ["up", "status", "add-server", "drain", "remove-server", "set-policy", "rotate-key", "keys", "check", "route"]
    commands += ["set-weight", "drain-switch", "plan", "apply", "history", "undo", "token"]
    commands += ["backup", "restore", "migrate"]
    listed = command("--help")
    for name in commands:
        assert name in listed
        assert f"Example: frontage {name}" in command(name, "--help")


def test_check_accepts_a_valid_file() -> None:
    assert "2 VIPs, 5 servers: no problems found" in command("check", str(EXAMPLE))
    assert json.loads(command("check", str(EXAMPLE), "--json"))["ok"]


def test_check_lists_problems_of_an_invalid_file(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(EXAMPLE.read_text().replace("sid: 3", "sid: 2"))
    assert f"{file}:65:10: servers[2].sid: duplicate sid 2" in command("check", str(file), code=1)
    problem = json.loads(command("check", str(file), "--json", code=1))["problems"][0]
    assert (problem["line"], problem["column"], problem["path"]) == (65, 10, ["servers", 2, "sid"])


def test_up_rejects_an_invalid_file(tmp_path: Path) -> None:
    assert "no such file" in command("up", str(tmp_path / "none.yaml"), code=1)


def test_commands_edit_the_file_without_a_controller(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(EXAMPLE.read_text())
    assert "server web2 is draining: written to" in command("drain", "web2", "-c", str(file))
    said = command("set-policy", "shop", "hash", "-c", str(file), "--json")
    assert json.loads(said) == {"ok": True, "changed": "policy of shop is hash", "installed": False, "missing": [], "number": 3}
    assert 'unknown server "web9"' in command("remove-server", "web9", "-c", str(file), code=1)


def test_commands_return_after_the_installation(running: Path) -> None:
    def server(name: str) -> dict[str, Any] | None:
        found = status(running)
        assert found["difference"]["tables"] == {}
        return next((server for server in found["servers"] if server["name"] == name), None)

    at = ("-c", str(running))
    assert "server web2 is draining: installed" in command("drain", "web2", *at)
    drained = server("web2")
    assert drained is not None
    assert drained["state"] == "draining"
    command("drain", "web2", "--undo", *at)
    assert "installed" in command("add-server", "web5", "--vip", "shop", "--address", "10.0.0.11", "--port", "8081", *at)
    assert server("web5") is not None
    assert "installed" in command("remove-server", "web5", *at)
    assert server("web5") is None
    assert "installed" in command("set-policy", "shop", "cclb4-current", *at)
    assert "installed" in command("rotate-key", *at)
    assert status(running)["keys"] == [{"id": 1, "epoch": 1, "seals": False}, {"id": 2, "epoch": 0, "seals": True}]
    assert "# a larger machine" in running.read_text()


def test_status_prints_tables(running: Path) -> None:
    said = command("status", "-c", str(running))
    assert "controller  installed, primary" in said
    assert "installed   all" in said
    assert "web4" in said
    assert "draining" in said


def test_controller_follows_valid_edits_of_the_file_only(running: Path) -> None:
    text = running.read_text()
    running.write_text(text.replace("policy: cclb4 ", "policy: hash "))
    until(lambda: status(running)["vips"][0]["policy"] == "hash" and reconciled(running))
    # The status command reads the file first, so query the controller itself.
    path = socket_path(load(running), running)
    running.write_text(text.replace("sid: 3", "sid: 2"))
    with pytest.raises(RequestError, match="duplicate sid 2"):
        ask(path, "POST", "/installation", timeout=LIMIT)
    answer = ask(path, "GET", "/status", timeout=LIMIT)
    assert "duplicate sid 2" in answer["controller"]["config_error"]
    assert answer["controller"]["phase"] == "installed"
    assert answer["vips"][0]["policy"] == "hash"
    assert answer["difference"]["tables"] == {}
    with pytest.raises(RequestError, match="Not Found"):
        ask(path, "POST", "/destruction", timeout=LIMIT)


def test_metrics_are_served(config_file: Path) -> None:
    with up(config_file):
        log = config_file.with_suffix(".log")
        url = next(word for word in log.read_text().split() if word.startswith("http://"))
        text = ""

        def scraped() -> bool:
            nonlocal text
            with urllib.request.urlopen(url, timeout=LIMIT) as answer:
                text = answer.read().decode()
            return 'frontage_phase{device="switch",phase="installed"} 1.0' in text

        until(scraped)
    for wanted in (
        'frontage_primary{device="switch"} 1.0',
        'frontage_server_packets_total{device="switch",direction="up",server="web1",vip="shop"} 0.0',
        'frontage_vip_bytes_total{device="switch",direction="down",vip="shop"} 0.0',
        'frontage_dropped_packets_total{device="switch",reason="no-route"} 0.0',
        'frontage_aifo_dropped_packets_total{device="switch",min_rpt_us="64"} 0.0',
        'frontage_steering_packets_total{device="switch",outcome="retrieved-cookie"} 0.0',
        'frontage_connection_table_inserts_total{device="switch",result="taken"} 0.0',
        'frontage_handshake_table_inserts_total{device="switch",result="refused"} 0.0',
        'frontage_reconcile_duration_seconds_bucket{device="switch",le="+Inf"}',
        'frontage_server_active{device="switch",server="web4",vip="shop"} 0.0',
    ):
        assert wanted in text, text


def test_controller_and_switch_recover_from_restarts(config_file: Path, switch: Switch) -> None:
    with up(config_file):
        until(lambda: reconciled(config_file))
        switch.stop()
        until(lambda: status(config_file)["controller"]["phase"] == "connecting")
        assert status(config_file)["controller"]["error"]
        switch.start()
        until(lambda: reconciled(config_file))
    # Without a controller, the command queries the switch itself.
    found = status(config_file)
    assert found["controller"]["phase"] == "not running"
    assert found["difference"]["tables"] == {}
    switch.stop()
    assert "no response from a P4Runtime server" in status(config_file)["controller"]["error"]


def test_standby_process_takes_over(config_file: Path) -> None:
    with up(config_file):
        until(lambda: reconciled(config_file))
        # With the same election id, the second controller is a standby and commands reach the first.
        with up(config_file):
            until(lambda: "role backup, election id 99" in config_file.with_suffix(".log").read_text())
            assert status(config_file)["controller"]["role"] == "primary"
        assert reconciled(config_file)
    with up(config_file, "--election-id", "3") as one:
        until(lambda: reconciled(config_file))
        with up(config_file, "--election-id", "2"):
            one.kill()
            one.wait()
            until(lambda: reconciled(config_file))
            found = status(config_file)["controller"]
            assert found["role"] == "primary"
            assert "installed" in command("drain", "web1", "-c", str(config_file))

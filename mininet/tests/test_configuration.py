# SPDX-License-Identifier: Apache-2.0
"""The controller accepts the demo's configuration."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.configuration import configuration, with_scheduler
from frontage_testbed.datacentre.services import FILMS, WEB, Service

SERVERS = [ServerAddresses(i) for i in range(32)]


def text(**changes: Any) -> str:
    arguments: dict[str, Any] = {
        "services": WEB,
        "servers": SERVERS,
        "in_service": SERVERS,
        "policy": "cclb4",
        "seed": 1,
        "grpc": "127.0.0.1:9559",
        "cpu_port": 510,
        "pipes": 1,
        "chip_pipes": 1,
        "p4info": Path("/nowhere/p4info"),
        "json_file": Path("/nowhere/json"),
        "control_socket": Path("/nowhere/control"),
        "metrics": "127.0.0.1:9464",
    }
    return configuration(**(arguments | changes))


def test_every_endpoint_has_unique_sid_and_name() -> None:
    servers = yaml.safe_load(text())["servers"]
    assert len({s["sid"] for s in servers}) == len(servers) == 2 * len(SERVERS)
    assert len({s["name"] for s in servers}) == len(servers)


def test_servers_out_of_service_have_port_but_no_endpoint() -> None:
    document = yaml.safe_load(text(in_service=SERVERS[:6]))
    assert len(document["servers"]) == 12
    assert len(document["ports"]) == 1 + len(SERVERS)


def test_equal_seeds_give_equal_keys() -> None:
    assert text() == text()
    assert text() != text(seed=2)


def test_only_port_towards_clients_has_scheduler() -> None:
    ports = yaml.safe_load(with_scheduler(text(), "aifo", 132))["ports"]
    assert [port["name"] for port in ports if "scheduler" in port] == ["internet"]
    assert ports[0]["scheduler"] == {"kind": "aifo", "capacity": 132}
    assert with_scheduler(with_scheduler(text(), "aifo", 132), "fifo", 132) == text()


@pytest.mark.parametrize("scheduler", ["fifo", "aifo"])
@pytest.mark.parametrize("services", [WEB, FILMS], ids=["TCP", "QUIC"])
def test_controller_accepts_configuration(tmp_path: Path, services: tuple[Service, ...], scheduler: str) -> None:
    command = Path(sys.executable).parent / "frontage"
    if not command.exists():
        pytest.skip("the controller is not installed in this environment")
    file = tmp_path / "frontage.yaml"
    file.write_text(with_scheduler(text(services=services), scheduler, 132))
    done = subprocess.run([command, "check", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

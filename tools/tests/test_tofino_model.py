# SPDX-License-Identifier: Apache-2.0
"""The packet tests' target for Tofino's model: its errors and its generated files. The model itself does not run here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from frontage_ptf import tofino_model
from frontage_ptf.tofino_model import Sde
from softswitch.packet_tests import RunError

RUN = Path(__file__).resolve().parents[2] / "ptf-tests" / "run"


@pytest.fixture
def sde(tmp_path: Path) -> Sde:
    """Return an installation whose programs do nothing."""
    (tmp_path / "bin").mkdir()
    for name in ("tofino-model", "bf_switchd", "p4c"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return Sde(tmp_path, tmp_path)


def test_run_without_sde_names_cause_and_fix() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("SDE", "SDE_INSTALL")}
    done = subprocess.run(
        [sys.executable, RUN, "TARGET=tofino-model"], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == (
        "ptf-tests: TARGET=tofino-model: SDE is not set: build open-p4studio with P4Runtime, and set SDE and SDE_INSTALL\n"
    )


def test_incomplete_installation_is_refused(sde: Sde) -> None:
    environment = {"SDE": str(sde.source), "SDE_INSTALL": str(sde.install)}
    assert Sde.find(environment) == sde
    sde.program("bf_switchd").unlink()
    with pytest.raises(RunError, match="bin/bf_switchd: no such program: correct SDE_INSTALL, or build open-p4studio"):
        Sde.find(environment)


def test_failing_compiler_is_reported(sde: Sde, tmp_path: Path) -> None:
    sde.program("p4c").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(RunError, match=r"tofino1\.p4: the program does not compile"):
        sde.compile(Path("tofino1.p4"), tmp_path)


def test_ports_have_the_interfaces_of_the_runner() -> None:
    assert tofino_model.port_map([1, 5]) == {
        "PortToVeth": [{"device_port": 1, "veth1": 2, "veth2": 3}, {"device_port": 5, "veth1": 10, "veth2": 11}]
    }


def test_driver_finds_what_the_compiler_writes(tmp_path: Path) -> None:
    (device,) = tofino_model.driver_config(tmp_path)["p4_devices"]
    (program,) = device["p4_programs"]
    (pipeline,) = program["p4_pipelines"]
    assert device["device-id"] == 0
    assert pipeline["context"] == f"{tmp_path}/tofino1.tofino/pipe/context.json"
    assert pipeline["config"] == f"{tmp_path}/tofino1.tofino/pipe/tofino.bin"


def test_device_configuration_has_lengths_in_front_of_its_parts() -> None:
    assert tofino_model.device_config("ab", b"\x01\x02\x03", b"{}") == (
        b"\x12\x13\x02\x00\x00\x00ab\x03\x00\x00\x00\x01\x02\x03\x02\x00\x00\x00{}"
    )
    long = tofino_model.device_config("ab", bytes(300), b"{}")
    assert long[:3] == b"\x12\xbc\x02"


def test_driver_serves_p4runtime_at_the_address_of_the_tests(sde: Sde, tmp_path: Path) -> None:
    model, driver = tofino_model.commands(sde, tmp_path, "127.0.0.1:9559")
    assert model[model.index("-f") + 1] == str(tmp_path / "ports.json")
    assert driver[-2:] == ["--p4rt-server", "127.0.0.1:9559"]

# SPDX-License-Identifier: Apache-2.0
"""The model of Tofino 1 from open-p4studio, with the driver's P4Runtime server, as a target of the packet tests."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softswitch.packet_tests import RunError

PROGRAM = "tofino1"
CPU_PORT = 320
"""The port of the PCIe bus on the model, which has four pipes."""
START_TIMEOUT = 240.0
"""Seconds that the driver may need to initialize the model."""
CHIP_TYPE = "2"
"""The model's number of Tofino 1."""


@dataclass(frozen=True)
class Sde:
    """An installation of open-p4studio."""

    source: Path
    install: Path

    @classmethod
    def find(cls, environment: Mapping[str, str]) -> "Sde":
        """Return the installation in SDE and SDE_INSTALL. Raises RunError."""
        for name in ("SDE", "SDE_INSTALL"):
            if not environment.get(name):
                raise RunError(
                    f"TARGET=tofino-model: {name} is not set: build open-p4studio with P4Runtime, and set SDE and SDE_INSTALL"
                )
        found = cls(Path(environment["SDE"]), Path(environment["SDE_INSTALL"]))
        for program in ("tofino-model", "bf_switchd", "p4c"):
            if not found.program(program).is_file():
                raise RunError(f"{found.program(program)}: no such program: correct SDE_INSTALL, or build open-p4studio")
        return found

    def program(self, name: str) -> Path:
        return self.install / "bin" / name

    def environment(self) -> dict[str, str]:
        """Return the environment of its programs."""
        libraries = [str(self.install / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        own = {"SDE": str(self.source), "SDE_INSTALL": str(self.install), "LD_LIBRARY_PATH": ":".join(libraries)}
        return os.environ | own

    def compile(self, source: Path, folder: Path, macros: Iterable[str] = ()) -> None:
        """Compile `source` for the tests: NAME.json has what SetForwardingPipelineConfig expects. Raises RunError."""
        name, output = source.stem, folder / f"{source.stem}.tofino"
        options = ["--target", "tofino", "--arch", "tna", "--p4runtime-force-std-externs", f"-DCPU_PORT={CPU_PORT}", *macros]
        command = [str(self.program("p4c")), *options, "--p4runtime-files", str(folder / f"{name}.p4info.txtpb")]
        done = subprocess.run([*command, "-o", str(output), str(source)], env=self.environment(), check=False)
        if done.returncode != 0:
            raise RunError(f"{source}: the program does not compile: correct the errors above")
        pipe = output / "pipe"
        (folder / f"{name}.json").write_bytes(
            device_config(name, (pipe / "tofino.bin").read_bytes(), (pipe / "context.json").read_bytes())
        )


def device_config(name: str, binary: bytes, context: bytes) -> bytes:
    """Return the device configuration of a program as the driver's P4Runtime server expects it.

    It is a P4DeviceConfig of PI (proto/p4/tmp/p4config.proto) whose device_data has three parts, each behind its length.
    """
    parts = (name.encode(), binary, context)
    data = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return b"\x12" + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Return the encoding of a number in Protocol Buffers."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def port_map(ports: Iterable[int]) -> dict[str, Any]:
    """Return the model's map of ports to veth pairs, which are those of the runner."""
    return {"PortToVeth": [{"device_port": port, "veth1": 2 * port, "veth2": 2 * port + 1} for port in ports]}


def driver_config(artifacts: Path) -> dict[str, Any]:
    """Return the driver's configuration for a program that `Sde.compile` has written to a folder."""
    output = artifacts / f"{PROGRAM}.tofino"
    pipeline = {
        "p4_pipeline_name": "pipe",
        "context": str(output / "pipe" / "context.json"),
        "config": str(output / "pipe" / "tofino.bin"),
        "pipe_scope": [0, 1, 2, 3],
        "path": str(output),
    }
    program = {"program-name": PROGRAM, "bfrt-config": str(output / "bf-rt.json"), "p4_pipelines": [pipeline]}
    return {
        "chip_list": [{"chip_family": "tofino", "instance": 0}],
        "p4_devices": [{"device-id": 0, "p4_programs": [program]}],
    }


def commands(sde: Sde, folder: Path, address: str) -> tuple[list[str], list[str]]:
    """Return the commands of the model and of the driver, whose files are in a folder."""
    model = [str(sde.program("tofino-model")), "--chip-type", CHIP_TYPE, "--install-dir", str(sde.install)]
    model += ["-f", str(folder / "ports.json"), "--p4-target-config", str(folder / "driver.json")]
    driver = [str(sde.program("bf_switchd")), "--install-dir", str(sde.install), "--conf-file", str(folder / "driver.json")]
    driver += ["--skip-p4", "--background", "--p4rt-server", address]
    return model, driver


@contextmanager
def _process(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def run(artifacts: Path, ports: Iterable[int], address: str) -> int:
    """Run the model and the driver until SIGTERM, or until the driver ends; return its status."""
    sde = Sde.find(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ports.json").write_text(json.dumps(port_map(ports)))
        (folder / "driver.json").write_text(json.dumps(driver_config(artifacts)))
        model, driver = commands(sde, folder, address)
        with _process(model, sde.environment()), _process(driver, sde.environment()) as process:
            return process.wait()

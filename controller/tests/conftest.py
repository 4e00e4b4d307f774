# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests with a real switch: the switch, the compiled program and configuration files.

``TARGET=bmv2`` runs them against ``simple_switch_grpc``; by default it is softswitch. Where these files are can be said with
FRONTAGE_SOFTSWITCH (the binary), BMV2 (the binary) and FRONTAGE_P4 (the folder of the compiled program).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Use the same examples in every run, and allow slow machines.
settings.register_profile("frontage", deadline=None, derandomize=True)
settings.load_profile("frontage")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "controller" / "examples" / "demo.yaml"
QUIC_EXAMPLE = EXAMPLE.with_name("quic.yaml")


def _binary() -> str | None:
    if os.environ.get("TARGET") == "bmv2":
        return os.environ.get("BMV2") or shutil.which("simple_switch_grpc")
    builds = [ROOT / "target" / "release" / "softswitch", ROOT / "target" / "debug" / "softswitch"]
    return os.environ.get("FRONTAGE_SOFTSWITCH") or next((str(b) for b in builds if b.exists()), None)


PROGRAM = Path(os.environ.get("FRONTAGE_P4", ROOT / "build" / "p4"))


class Switch:
    """A switch process without ports, with its own socket."""

    def __init__(self, binary: str, folder: Path):
        self.path = folder / "switch.sock"
        self.address = f"unix:{self.path}"
        self.log = folder / "switch.log"
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.path.unlink(missing_ok=True)
        options = ["--grpc-server-addr", self.address, "--cpu-port", "510"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, "--no-p4", "--device-id", "1", "--", *options], stdout=log, stderr=log, cwd=self.path.parent
            )
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self._process.poll() is None, f"the switch did not start:\n{self.log.read_text(errors='replace')}"
            assert time.monotonic() < deadline, "the switch does not answer"
            time.sleep(0.02)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.path))
            except OSError:
                return False
            return True

    def pause(self) -> None:
        """Let the switch neither respond nor end its connections."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, as the paths of sockets need; pytest's tmp_path is too long."""
    with tempfile.TemporaryDirectory(prefix="controller-") as path:
        yield Path(path)


def new_switch(folder: Path) -> Switch:
    """Return a switch, which does not run yet, with its files in ``folder``. Skip the test if the program is missing."""
    binary = _binary()
    if binary is None:
        pytest.skip("no switch: build softswitch, or install BMv2 and set TARGET=bmv2")
    if not (PROGRAM / "frontage.json").exists():
        pytest.skip(f"no compiled program in {PROGRAM}: compile p4src/v1model/frontage.p4")
    return Switch(binary, folder)


@pytest.fixture
def switch(folder: Path) -> Iterator[Switch]:
    switch = new_switch(folder)
    switch.start()
    yield switch
    switch.stop()


@pytest.fixture
def config_file(folder: Path, switch: Switch) -> Path:
    """The example configuration for this switch."""
    return for_switch(EXAMPLE, folder, switch)


@pytest.fixture
def quic_file(folder: Path, switch: Switch) -> Path:
    """The example with QUIC services for this switch."""
    return for_switch(QUIC_EXAMPLE, folder, switch)


def for_switch(example: Path, folder: Path, switch: Switch) -> Path:
    text = example.read_text(encoding="utf-8")
    text = text.replace("../../build/p4", str(PROGRAM)).replace("127.0.0.1:9559 ", switch.address)
    text = text.replace("127.0.0.1:9464", "127.0.0.1:0")
    file = folder / example.name
    file.write_text(text, encoding="utf-8")
    return file

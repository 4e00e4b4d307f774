# SPDX-License-Identifier: Apache-2.0
"""A suite to run: a folder of PTF tests, a target, and the parameters that the tests read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .errors import RunError
from .programs import Artifacts
from .target import GRPC, Target

PORTS = tuple(range(8))
"""The ports that scripts for BMv2 commonly use."""


@dataclass(frozen=True)
class Suite:
    """A run of PTF tests."""

    tests: Path
    """The folder of the tests."""
    target: Target
    artifacts: Artifacts | None
    """The compiled program, or None if the tests have programs of their own."""
    output: Path
    """The folder for logs, captures and results."""
    names: tuple[str, ...] = ()
    """Files, classes, MODULE.CLASS or PTF groups; all tests if it is empty."""
    ports: tuple[int, ...] = PORTS
    load: bool = False
    """Whether the switch starts with the program, for tests that do not set it by P4Runtime."""
    jobs: int = 1
    """Number of switches that share the tests."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Further test parameters, or other values of those in `test_parameters`."""
    ptf_options: tuple[str, ...] = ()
    allow_skips: bool = False
    """True if a run without root or without any test succeeds."""
    junit: Path | None = None

    def test_parameters(self) -> dict[str, object]:
        """Return the parameters that PTF suites for P4Runtime read: those of p4c, p4-guide, the P4 tutorials and Stratum."""
        values: dict[str, object] = {"grpcaddr": GRPC, "device_id": 0, "cpu_port": self.target.cpu_port}
        values |= {"packet_wait_time": 0.1, "target": self.target.name}
        if self.artifacts is not None:
            values |= {"p4info": str(self.artifacts.p4info), "config": str(self.artifacts.json), "json": str(self.artifacts.json)}
        return values | dict(self.parameters)

    def specs(self) -> list[str]:
        """Return PTF's names of the selected tests."""
        return [self._spec(name) for name in self.names]

    def _spec(self, name: str) -> str:
        stem = Path(name).name.removesuffix(".py")
        files = sorted(self.tests.rglob("*.py"))
        if "." in stem or stem.startswith("^") or any(file.stem == stem for file in files):
            return stem
        for file in files:
            if re.search(rf"^class {re.escape(stem)}\b", file.read_text(), re.MULTILINE):
                return f"{file.stem}.{stem}"
        if any(re.search(rf"""group\(["']{re.escape(stem)}["']\)""", file.read_text()) for file in files):
            return stem
        raise RunError(f"{self.tests}: unknown test, file or group {name!r}: use a name in this folder")

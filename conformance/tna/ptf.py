# SPDX-License-Identifier: Apache-2.0
"""Runs a PTF test against a switch of its own, in namespaces of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from outcomes import Outcome
from tna.client import PYTHON, environment
from tna.compilers import Compilation
from tna.inside import START_TIMEOUT, Job
from tna.programs import Suite

TIME_LIMIT = 120.0
"""Seconds after which a test counts as failed."""
SLOW_TIME_LIMIT = 400.0
"""Seconds after which a test of `SLOW` counts as failed."""
SLOW = {
    "bri_set_forwarding_pipeline/hitless_negative/HitlessTnaTernaryMatchIndirectNegative",
    "bri_set_forwarding_pipeline/hitless_negative/HitlessTnaTernaryMatchNegative",
    "bri_set_forwarding_pipeline/independent_client/MultipleIndependentClientTest",
    "selector_resize/Members",
    "selector_resize/Shared",
    "selector_resize/Traffic",
    "tna_action_selector/ActionProfileSelectorTestMany",
    "tna_action_selector/SelectorADTOffset",
    "tna_action_selector/SelectorRandomADTOffset",
}
"""Tests that send many packets, or wait long, and so need more time."""
PIPES = 4
"""Number of pipes of the switch: those of the chip."""
PACKETS = "bf_pktpy.ptf.packet_pktpy"
"""PTF's second library of packets; scapy is the first."""
ADDRESS = "127.0.0.1"
PORT = 50052
"""Port of the BfRuntime server. Tests that run at once have their own network namespaces."""
ERROR = re.compile(r"^(?:[\w.]+\.)?(?:\w*(?:Error|Exception|Rendezvous|StatusCode)\b|Exit\b).*", re.MULTILINE)
GRPC_STATUS = re.compile(r"\s*status = StatusCode\.(\w+)\s*details = \"(.*)\"")
"""The lines after that of a gRPC error."""
UPDATE_ERROR = re.compile(r"At index \d+: (.*)")
RAN = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
SKIPS = re.compile(r"skipped=|\bskipping\b|not supported yet|^Ran 1 test in 0\.00", re.IGNORECASE | re.MULTILINE)
"""Output of tests that skip themselves, or return before they reach the switch."""


@dataclass(frozen=True)
class Runner:
    switch: Path
    programs: Path
    """Folder of the compiled programs for each chip."""
    logs: Path
    limit: float = TIME_LIMIT

    def run(self, suite: Suite, test: str) -> Outcome:
        """Run a test. Its logs are in the folder `logs`/SUITE/TEST."""
        name = f"{suite.name}/{test}"
        programs = self.programs / suite.chip.name
        start: list[str] = ["--no-p4"]
        if suite.program:
            compiled = Compilation(suite.program, suite.chip, programs / suite.program.name)
            if not compiled.json.is_file():
                return Outcome(name, False, "the program does not compile")
            start = [str(compiled.json), "--bfrt-schema", str(compiled.schema)]
        folder = self.logs / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        limit = max(self.limit, SLOW_TIME_LIMIT) if name in SLOW else self.limit
        job = Job(
            switch=[str(self.switch), *start, *_interfaces(suite), "--", "--pipes", str(PIPES), *_servers()],
            ptf=[str(PYTHON), str(PYTHON.with_name("ptf")), *_ptf_options(suite, programs, folder), f"test.{test}"],
            ports=list(suite.ports),
            internal=list(suite.internal_ports),
            limit=limit,
            environment=environment(),
            load=_load(suite, programs),
        )
        (folder / "job.json").write_text(json.dumps(asdict(job), indent=2) + "\n")
        failure = _unshared(folder, limit + START_TIMEOUT + 30)
        return Outcome(name, failure == "", failure)


def _interfaces(suite: Suite) -> list[str]:
    return [part for port in suite.ports for part in ("-i", f"{port}@sw{port}")]


def _load(suite: Suite, programs: Path) -> list[str]:
    """Return the command that loads the programs of different pipes, which is empty without them."""
    if not suite.parts:
        return []
    script = str(Path(__file__).with_name("load.py"))
    folders = [str(programs / part.name) for part in suite.parts]
    return [str(PYTHON), script, f"{ADDRESS}:{PORT}", str(PIPES), suite.chip.name, *folders]


def _servers() -> list[str]:
    return ["--grpc-server-addr", f"{ADDRESS}:0", "--bfrt-grpc-server-addr", f"{ADDRESS}:{PORT}"]


def _ptf_options(suite: Suite, programs: Path, folder: Path) -> list[str]:
    parameters: dict[str, object] = {
        "arch": suite.chip.name,
        "target": "asic-model",
        "test_seed": "1",
        "num_pipes": str(PIPES),
        "grpc_server": ADDRESS,
        "bfrt_grpc_port": str(PORT),
        "p4_name": suite.program.name if suite.program else "",
        "port_mode": "25g",
        "setup": False,
        "cleanup": False,
        "pkt_size": "100",
        "counter_byte_adjust": "0",
        "traffic_gen": "none",
        # Tests that load programs take them from the first folder, and name files in the second to the switch.
        "base_pick_path": f"{programs}/",
        "base_put_path": str(folder / "put"),
    }
    ports = [port for port in suite.ports if port not in suite.internal_ports]
    interfaces = [part for port in ports for part in ("--interface", f"0-{port}@ptf{port}")]
    values = ";".join(f"{name}={value!r}" for name, value in parameters.items())
    text = _read(suite.folder / "test.py")
    # Some tests read packets with a method that scapy lacks.
    needs_other = "load_bytes(" in text and '"load_bytes"' not in text
    library = ["--packet-manipulation-module", PACKETS] if needs_other else []
    return ["--test-dir", str(suite.folder), *interfaces, *library, f"--test-params={values}"]


def _unshared(folder: Path, limit: float) -> str:
    """Run `inside` in new namespaces of processes, networks, mounts and IPC; return the failure, empty if it passes."""
    unshare = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--mount", "--ipc"]
    inside = [sys.executable, str(Path(__file__).with_name("inside.py")), "job.json"]
    with (folder / "runner.log").open("wb") as log:
        process = subprocess.Popen(
            [*unshare, *inside], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"stopped after {limit:.0f} s"
    test = _read(folder / "test.log")
    if status == 0:
        return vacuous(test)
    return _read(folder / "runner.log").strip() or first_error(test)


def vacuous(log: str) -> str:
    """Return why a successful run of PTF does not count as a passed test; empty if it does."""
    ran = RAN.search(log)
    if ran is None or ran.group(1) == "0":
        return "PTF did not run the test"
    return "the test skips itself, or a part" if SKIPS.search(log) else ""


def first_error(log: str) -> str:
    """Return the first error in PTF's output, in one line."""
    found = ERROR.search(log)
    if found is None:
        return "failed without an error"
    if status := GRPC_STATUS.match(log, found.end()):
        # Failed batches have a status without details, followed by the error of each update.
        update = UPDATE_ERROR.search(log, status.end())
        return (update.group(1) if update else f"{status.group(1)}: {status.group(2)}")[:200]
    return found.group(0).strip()[:200]


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""

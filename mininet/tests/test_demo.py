# SPDX-License-Identifier: Apache-2.0
"""The demo from the user's view: a short run, and the clean-up after an interruption."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from frontage_demo.__main__ import demo
from frontage_testbed.datacentre.profiles import DEFAULT, PROFILES
from frontage_testbed.datacentre.settings import POLICIES, Settings
from frontage_testbed.load.protocols import PROTOCOLS
from testbeds import Sandboxed, deployment, needs_root, only_long

pytestmark = [needs_root, pytest.mark.slow(seconds=20)]

STEERING = {
    "tcp": {"retrieved-cookie", "insight"},
    "quic": {"retrieved-address", "retrieved-cid", "retrieved-handshake", "insight"},
}
"""How the switch must have found servers, by protocol."""


def start(directory: Path, **settings: str) -> subprocess.Popen[str]:
    deployment(Settings())
    environment = os.environ | {"FRONTAGE_DEMO_DIR": str(directory)} | settings
    return subprocess.Popen(
        [sys.executable, "-m", "frontage_demo"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow(seconds=50)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_policy_serves_all_requests(tmp_path: Path, protocol: str) -> None:
    process = start(tmp_path, DEMO_SECONDS="5", SEED="3", SERVERS="4", PROTOCOL=protocol)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    result = json.loads((tmp_path / "result.json").read_text())
    policies = [policy for policy in POLICIES if policy not in PROTOCOLS[protocol].left_out]
    assert list(result["policies"]) == policies
    arrivals = len((tmp_path / "arrivals.csv").read_text().splitlines()) - 1
    for figures in result["policies"].values():
        assert figures["requests"] == arrivals
        assert figures["failures"] == 0
        assert figures["flows_up_to_100KB"]["mean_fct_s"] > 0
        assert figures["flows_up_to_100KB"]["p99_fct_s"] > 0
        assert figures["flows_above_1MB"]["mean_fct_s"] > 0
        assert figures["variance_over_servers"]["active_flows"] > 0
        steering = {name for name, count in figures["steering"].items() if count}
        assert steering >= STEERING[protocol], "the switch counts how it found servers"
    assert result["startup_s"] > 0
    report = (tmp_path / "report.html").read_text()
    assert all(name in report for name in (*policies, *STEERING[protocol]))
    assert report.count("<svg") == 3 + len(policies)
    with (tmp_path / "requests.csv").open(newline="") as file:
        servers = Counter(row["server"] for row in csv.DictReader(file))
    assert servers.keys() == {"s1", "s2", "s3", "s4"}


@pytest.mark.parametrize(
    ("program", "protocol"),
    [
        pytest.param(name, protocol, marks=() if name in ("tofino1", "tofino1quic", "tofino2full") else only_long)
        for name, profile in PROFILES.items()
        for protocol in profile.protocols
    ],
)
def test_programs_for_tofino_serve_all_requests(tmp_path: Path, program: str, protocol: str) -> None:
    settings = Settings(seconds=3, seed=4, servers=4, protocol=protocol, target="tna", program=program, policies=("cclb4",))
    parts = deployment(settings)
    assert Sandboxed(lambda box: demo(settings, parts, tmp_path, box), tmp_path).result() == 0
    (figures,) = json.loads((tmp_path / "result.json").read_text())["policies"].values()
    assert figures["requests"] > 100
    assert {reason for reason, count in figures["steering"].items() if count} >= {"assigned-cclb4", *STEERING[protocol]}


@pytest.mark.parametrize(
    ("target", "program", "protocol"),
    [
        *(("softswitch", DEFAULT, protocol) for protocol in PROTOCOLS),
        ("tna", "tofino2full", "tcp"),
        pytest.param("tna", "tofino2full", "quic", marks=only_long),
    ],
)
def test_aifo_drops_long_flows_and_serves_all_requests(tmp_path: Path, target: str, program: str, protocol: str) -> None:
    settings = Settings(
        seconds=5,
        seed=3,
        servers=4,
        protocol=protocol,
        target=target,
        program=program,
        policies=("cclb4",),
        schedulers=("fifo", "aifo"),
    )
    parts = deployment(settings)
    assert Sandboxed(lambda box: demo(settings, parts, tmp_path, box), tmp_path).result() == 0
    result = json.loads((tmp_path / "result.json").read_text())["policies"]
    assert list(result) == ["cclb4", "cclb4+aifo"]
    assert [figures["scheduler"] for figures in result.values()] == ["fifo", "aifo"]
    fifo, aifo = result.values()
    assert fifo["requests"] == aifo["requests"] > 0
    assert fifo["drops"]["aifo"] == sum(fifo["aifo_refusals"].values()) == 0
    assert aifo["drops"]["aifo"] == sum(aifo["aifo_refusals"].values())
    # The senders transmit 12 % of all bytes while their flow needs less than 8,192 us more. A queue that ignores ranks would drop
    # as large a share of those.
    soon_done = sum(count for least, count in aifo["aifo_refusals"].items() if int(least) < 8192)
    assert 50 * soon_done < aifo["drops"]["aifo"]
    if protocol == "tcp":
        assert aifo["retransmitted_segments"] > 0
    assert "FIFO and AIFO" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_demo_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, DEMO_SECONDS="60", SERVERS="4")
    assert process.stdout is not None
    for line in process.stdout:
        if inside := re.search(r"nsenter --all --target (\d+)", line):
            break
    else:
        pytest.fail("the demo did not come up")
    first = Path("/proc") / inside[1]
    namespaces = {(first / "ns" / kind).readlink() for kind in ("net", "pid")}
    time.sleep(3)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL), output
    deadline = time.monotonic() + 20
    while users := _processes_in(namespaces):
        assert time.monotonic() < deadline, users
        time.sleep(0.1)
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert not list((tmp_path / "run").glob("*"))


def _processes_in(namespaces: set[Path]) -> list[str]:
    users = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if {(process / "ns" / kind).readlink() for kind in ("net", "pid")} & namespaces:
                users.append(process.name)
        except OSError:
            continue
    return users

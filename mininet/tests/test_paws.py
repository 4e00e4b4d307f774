# SPDX-License-Identifier: Apache-2.0
"""PAWS: an unmodified client's connections survive the wrap of timestamps and a long silence, and servers measure the same
round-trip times.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean

import pytest

from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.nodes import Namespace
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, deployment, needs_root, network_counters, only_long

pytestmark = [needs_root, only_long, pytest.mark.slow(seconds=115)]

SECONDS = float(os.environ.get("PAWS_SECONDS", "110"))
"""At least one wrap of 16 bits of milliseconds (65.5 s) and the gap."""
IDLE = 40.0
"""Longer than half a wrap, after which a cookie in the upper half of TSval would make the clock run backwards."""
IDLE_FROM = (SECONDS - IDLE) / 2
CONNECTIONS = 10
PERIOD = 0.5
SIZE = 30_000
STALL = 1.0
SETTINGS = Settings(servers=2, clients=1, policies=("cclb4",), delay=0.010, queue_delay=0.05)


def smoothed_rtts(server: Namespace) -> dict[str, float]:
    """Return the kernel's smoothed RTT (ms) of every connection to the server, by the client's address and port."""
    lines = server.run(["ss", "-Htinp", "state", "established", f"( sport = :{HTTP_PORT} )"]).stdout.splitlines()
    rtts = {}
    for connection, details in zip(lines[::2], lines[1::2], strict=True):
        if rtt := re.search(r"\brtt:([0-9.]+)/", details):
            rtts[connection.split()[3]] = float(rtt[1])
    return rtts


def run_client(box: Sandbox, *, cookies: bool) -> object:
    with deployment(SETTINGS).testbed(SETTINGS, box, cookies=cookies) as testbed:
        testbed.offer_objects([SIZE])
        testbed.wait_until_ready()
        before = [network_counters(h) for h in (*testbed.clients.values(), *testbed.servers.values())]
        command = [sys.executable, "-m", "frontage_testbed.load.keepalive", "--address", VIP4, "--port", str(HTTP_PORT)]
        command += ["--path", f"/objects/{SIZE}", "--connections", str(CONNECTIONS), "--seconds", str(SECONDS)]
        command += ["--period", str(PERIOD), "--idle-from", str(IDLE_FROM), "--idle-for", str(IDLE)]
        with (box.scratch / "client.log").open("wb") as log, (box.scratch / "exchanges").open("wb") as output:
            client = testbed.clients[0].spawn(command, stdout=output, stderr=log)
        rtts: list[float] = []
        began = time.monotonic()
        while True:
            try:
                status = client.wait(2.0)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - began > 5.0:  # the burst of the initial window dominates the first values
                    rtts += [rtt for server in testbed.servers.values() for rtt in smoothed_rtts(server).values()]
        after = [network_counters(h) for h in (*testbed.clients.values(), *testbed.servers.values())]
        active = testbed.agents.active_flows()
    return {
        "status": status,
        "log": (box.scratch / "client.log").read_text(),
        "exchanges": [json.loads(line) for line in (box.scratch / "exchanges").read_text().splitlines()],
        "rtts": rtts,
        "paws": [a["TcpExt.PAWSEstab"] - b["TcpExt.PAWSEstab"] for a, b in zip(after, before, strict=True)],
        "active": active,
    }


def test_connections_survive_timestamp_wrap_and_silence(tmp_path: Path) -> None:
    deployment(SETTINGS)
    with_cookies = Sandboxed(lambda box: run_client(box, cookies=True), tmp_path / "cookies")
    without = Sandboxed(lambda box: run_client(box, cookies=False), tmp_path / "plain")
    results = {"with cookies": with_cookies.result(), "without": without.result()}
    for name, result in results.items():
        assert result["status"] == 0, f"{name}: {result['log']}"
        exchanges = result["exchanges"]
        assert len({(e["connection"], e["local_port"], e["server"]) for e in exchanges}) == CONNECTIONS, name
        assert min(sum(e["connection"] == n for e in exchanges) for n in range(CONNECTIONS)) >= (SECONDS - IDLE) * 0.8
        assert [e for e in exchanges if e["took"] > STALL] == [], name
        assert max(e["at"] for e in exchanges) > SECONDS - 5
        assert not [e for e in exchanges if IDLE_FROM + 2 < e["at"] < IDLE_FROM + IDLE - 1], "the gap is silent"
        assert sum(result["paws"]) == 0, name
    assert results["with cookies"]["active"] == [0, 0], "no flow is active after all responses"
    cookie, plain = fmean(results["with cookies"]["rtts"]), fmean(results["without"]["rtts"])
    assert cookie == pytest.approx(plain, rel=0.2)

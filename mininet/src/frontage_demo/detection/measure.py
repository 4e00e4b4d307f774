# SPDX-License-Identifier: Apache-2.0
"""The measurement: every fault at one server after the other, while a client sends requests."""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import yaml

from frontage_testbed.datacentre import checker
from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4
from frontage_testbed.datacentre.deployment import Deployment
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.faults import FAULTS, fault
from frontage_testbed.datacentre.servers import WebServer
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.metricsclient import scrape
from frontage_testbed.nodes import NodeError
from frontage_testbed.sandbox import Sandbox

SETTINGS = Settings(servers=8, clients=1, policies=("cheetah-rr",), queue_delay=0.1)
CHECK = {"kind": "http", "path": "/health", "interval": 0.25, "timeout": 0.25, "rise": 1, "fall": 2}
SLOWNESS = 1.5
"""Longest response time of a slow server in seconds: six timeouts of a check."""
RATE = 40.0
"""Requests of the client per second, each over a new connection."""
REQUEST_TIMEOUT = 1.0
"""Seconds after which a request has failed."""
LIMIT = 60.0
SETTLE = 0.2
"""Seconds after the end of a fault until its requests are counted."""


class Repetition(NamedTuple):
    """The measurement of one fault."""

    detected: float
    """Seconds from the fault until the controller found the server failed."""
    written: float
    """Seconds from then until the switch had the change."""
    failed: int
    """Failed requests among those that began during the fault."""
    sent: int
    """All requests that began during the fault."""


def measure(parts: Deployment, box: Sandbox, rounds: int) -> dict[str, list[Repetition]]:
    """Return the repetitions of each fault. Raises NodeError."""
    testbed = parts.testbed(SETTINGS, box)
    checker.attach(testbed.edge, CHECK)
    _check_only(VIP4, testbed.edge.config)
    result: dict[str, list[Repetition]] = {name: [] for name in FAULTS}
    with testbed:
        testbed.wait_until_ready()
        requests = box.scratch / "requests"
        client = [sys.executable, "-m", "frontage_demo.detection.client", VIP4, HTTP_PORT, RATE, REQUEST_TIMEOUT]
        with requests.open("wb") as out:
            process = testbed.clients[0].spawn([str(word) for word in client], stdout=out)
        for server in testbed.web_servers:
            _wait_until_healthy(server.addresses.name)
        turns = itertools.cycle(testbed.web_servers)
        for number in range(rounds):
            for name in FAULTS:
                result[name].append(_repeat(name, next(turns), testbed.edge.config.parent / "controller.log", requests, box))
            print(f"{number + 1} of {rounds}", file=sys.stderr, flush=True)
        process.kill()
    return result


def _repeat(name: str, server: WebServer, log: Path, requests: Path, box: Sandbox) -> Repetition:
    offset, began = log.stat().st_size, time.time()
    patterns = (rf"server {server.addresses.name}-\S+ of VIP \S+ has failed", r" \d+ entries: ")
    with fault(name, server, SETTINGS, box.scratch, SLOWNESS):
        detected, written = _wait_for(log, offset, patterns)
        # Requests that began before the change have ended then.
        time.sleep(REQUEST_TIMEOUT)
        ended = time.time()
    time.sleep(SETTLE)
    _wait_until_healthy(server.addresses.name)
    outcomes = _outcomes(requests, began, ended)
    return Repetition(detected - began, written - detected, outcomes.count(False), len(outcomes))


def _wait_for(log: Path, offset: int, patterns: Sequence[str]) -> list[float]:
    """Wait until lines of the log after ``offset`` match the patterns in this order, and return their Unix times."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        times: list[float] = []
        with log.open() as file:
            file.seek(offset)
            for line in file:
                if len(times) < len(patterns) and line.endswith("\n") and re.search(patterns[len(times)], line):
                    times.append(datetime.strptime(" ".join(line.split(" ")[:2]), "%Y-%m-%d %H:%M:%S,%f").timestamp())
        if len(times) == len(patterns):
            return times
        time.sleep(0.02)
    raise NodeError(f"the controller did not write '{patterns[-1]}' within {LIMIT:g} s")


def _wait_until_healthy(name: str) -> None:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        samples = scrape(METRICS).samples
        labels = [s.labels for s in samples if s.name == "frontage_server_health" and s.value]
        if any(one["server"].partition("-")[0] == name and one["health"] == "healthy" for one in labels):
            return
        time.sleep(0.1)
    raise NodeError(f"{name} did not recover within {LIMIT:g} s")


def _outcomes(requests: Path, began: float, ended: float) -> list[bool]:
    """Return whether the requests succeeded that began during a fault."""
    lines = (line.split() for line in requests.read_text().splitlines()[:-1])
    return [outcome == "1" for at, outcome in lines if began <= float(at) <= ended]


def _check_only(address: str, file: Path) -> None:
    """Leave out the checks of all VIPs but one."""
    document = yaml.safe_load(file.read_text())
    for vip in document["vips"]:
        if vip["address"] != address:
            del vip["health"]
    file.write_text(yaml.safe_dump(document, sort_keys=False))

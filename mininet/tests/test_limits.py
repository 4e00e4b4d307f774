# SPDX-License-Identifier: Apache-2.0
"""Limits against real clients: one client is limited, and another one is not; the change back takes effect at once."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4, ClientAddresses
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=25)]

SETTINGS = Settings(servers=2, clients=2, policies=("cclb4",))
BURST = 4
ATTEMPTS = 20
LIMIT = 60.0
"""Seconds that the test waits for anything."""

CONNECT = """
import json, socket, sys
passed = 0
for _ in range(int(sys.argv[3])):
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=0.3).close()
        passed += 1
    except OSError:
        pass
print(passed)
"""


def connect(testbed: Testbed, client: int) -> int:
    """Return how many of ATTEMPTS connections succeed; each has too little time for a second SYN."""
    command = [sys.executable, "-c", CONNECT, VIP4, str(HTTP_PORT), str(ATTEMPTS)]
    return int(testbed.clients[client].run(command, timeout=LIMIT).stdout)


def set_limits(testbed: Testbed, limits: dict[str, object] | None) -> None:
    """Change the limits of the IPv4 VIP, and wait until the switch has them."""
    document = yaml.safe_load(testbed.edge.config.read_text())
    document["vips"][0].pop("limits", None)
    if limits is not None:
        document["vips"][0]["limits"] = limits
    testbed.edge.write_configuration(yaml.safe_dump(document, sort_keys=False))
    deadline = time.monotonic() + LIMIT
    while True:
        status: dict[str, Any] = json.loads(testbed.edge.frontage("status", "--json"))
        changes = sum(status["difference"][kind] for kind in ("missing", "different", "unexpected"))
        if (status["vips"][0]["limits"] is not None) == (limits is not None) and not changes:
            return
        assert time.monotonic() < deadline, "the limits are not installed"
        time.sleep(0.1)


def test_limited_prefix_does_not_limit_others(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.testbed(SETTINGS, box) as testbed:
            testbed.wait_until_ready()
            limited = f"{ClientAddresses(0).address4}/32"
            client = {"prefix": limited, "new_connections": 1, "connection_burst": BURST}
            set_limits(testbed, {"clients": [client], "new_connections": 100_000})
            begun = time.monotonic()
            few = connect(testbed, 0)
            seconds = time.monotonic() - begun
            result = {"few": few, "seconds": seconds, "all": connect(testbed, 1)}
            metrics = scrape(METRICS)
            result["dropped"] = metrics.total("frontage_limited_packets_total", vip="web", limit="client-connections")
            set_limits(testbed, None)
            result["after"] = connect(testbed, 0)
            result["reason"] = testbed.edge.counters().drops["limit-client-connections"]
            return result

    result = Sandboxed(body, tmp_path).result()
    print(result)
    # One more for each second, and one for a part of it.
    assert BURST <= result["few"] <= BURST + result["seconds"] + 1
    assert result["few"] < ATTEMPTS
    assert result["all"] == result["after"] == ATTEMPTS
    assert result["dropped"] == result["reason"] >= ATTEMPTS - result["few"]

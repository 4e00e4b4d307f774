# SPDX-License-Identifier: Apache-2.0
"""Resets without timestamps: the servers of a client that has vanished learn of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4, VIP6
from frontage_testbed.datacentre.servers import PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox
from quicrounds import wait_until
from testbeds import Sandboxed, deployment, needs_root, network_counters

pytestmark = [needs_root, pytest.mark.slow(seconds=20)]

SETTINGS = Settings(servers=4, clients=1, policies=("cclb4",))
CONNECTIONS = 40
"""By the hash alone, a quarter of the resets would reach their servers."""
SIZE = 1_000_000
"""Bytes of a download, which takes two minutes."""
SCRIPT = Path(__file__).parent / "silentclose.py"


@pytest.mark.parametrize("vip", [VIP4, VIP6])
def test_resets_without_timestamps_reach_their_servers(tmp_path: Path, vip: str) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.testbed(SETTINGS, box) as testbed:
            testbed.offer_objects([SIZE])
            testbed.wait_until_ready()

            def open_connections() -> int:
                listing = ["ss", "-Htn", "state", "established", f"( sport = :{HTTP_PORT} )"]
                return sum(len(server.run(listing).stdout.splitlines()) for server in testbed.servers.values())

            def resets() -> int:
                return sum(network_counters(server)["Tcp.EstabResets"] for server in testbed.servers.values())

            wait_until(lambda: open_connections() == 0, "no connection is left of the wait for the servers")
            before = resets()
            command = [sys.executable, SCRIPT, vip, str(HTTP_PORT), f"{PACED}/{SIZE}", str(CONNECTIONS)]
            with (box.scratch / "client.log").open("wb") as log:
                status = testbed.clients[0].spawn(command, stdout=log, stderr=log).wait()
            assert status == 0, (box.scratch / "client.log").read_text()
            wait_until(lambda: open_connections() == 0, "the servers have closed the connections")
            return {"resets": resets() - before, "steering": testbed.edge.counters().steering}

    result = Sandboxed(body, tmp_path).result()
    assert result["resets"] == CONNECTIONS
    # A server may have sent more than one segment before it learned of the reset.
    assert result["steering"]["retrieved-recent"] >= CONNECTIONS
    assert result["steering"].get("hashed-no-cookie", 0) == 0

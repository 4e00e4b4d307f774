# SPDX-License-Identifier: Apache-2.0
"""Handshakes that change the switch between SYN and acknowledgment, while the switches answer SYNs.

One of the switches has started later than the others. Its clock must be theirs, or it judges the answers as too old.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cuts import dropping
from fleets import answer_syns, renew_syn_keys
from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.fleet.testbed import fleet_testbed
from frontage_testbed.nodes import Namespace
from frontage_testbed.sandbox import Sandbox
from healthbeds import wait
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [
    needs_root,
    pytest.mark.slow(seconds=150),
    pytest.mark.skipif("LONG" not in os.environ, reason="part of `make test-long`"),
]

SETTINGS = Settings(servers=4, clients=2, policies=("cclb4",), queue_delay=0.1)
HANDSHAKES = 100
"""Handshakes of each client; the second one sends no timestamps."""
AGE = 75.0
"""Seconds between the starts of the switches. The cookie counts time in units of 67 s."""

REQUESTS = """
import pathlib, socket, sys, time
sockets = [socket.create_connection((sys.argv[1], {port}), timeout=20) for _ in range({count})]
print("connected", flush=True)
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.02)
for one in sockets:
    try:
        one.sendall(b"GET /health HTTP/1.0\\r\\n\\r\\n")
        print(one.recv(12).decode() or "end", flush=True)
    except OSError as error:
        print(error, flush=True)
"""


def outcomes(client: Namespace, directory: Path, reroute: Callable[[], None]) -> list[str]:
    """Return the outcomes of requests whose handshakes lack the acknowledgment until the routes have changed."""
    go, output = directory / f"go-{client.name}", directory / f"requests-{client.name}"
    with dropping(client, "tcp flags & (syn | ack) == ack"), output.open("wb") as out:
        script = REQUESTS.format(port=HTTP_PORT, count=HANDSHAKES)
        process = client.spawn([sys.executable, "-c", script, VIP4, str(go)], stdout=out, stderr=out)
        wait(lambda: "connected" in output.read_text(), "the client has not connected")
        reroute()
    go.touch()
    process.wait(60)
    return output.read_text().splitlines()[1:]


def test_handshakes_complete_at_a_switch_that_started_later(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        bed = fleet_testbed(parts, SETTINGS, box, 2)
        answer_syns(bed.edge)
        with bed as testbed:
            began = time.monotonic()
            with_timestamps, without = testbed.clients.values()
            without.run(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_timestamps"])
            renew_syn_keys(testbed)
            testbed.wait_until_ready()
            one, two = testbed.edge.edges
            testbed.route_through([two])
            time.sleep(max(0.0, AGE - (time.monotonic() - began)))
            testbed.edge.kill_one(one)
            testbed.edge.start_one(one)
            testbed.edge.wait_until_installed()
            result = {}
            for client in (with_timestamps, without):
                for before, after in ((two, one), (one, two)):
                    testbed.route_through([before])
                    found = outcomes(client, box.scratch, lambda edge=after: testbed.route_through([edge]))
                    result[f"{client.name}: {before.name} to {after.name}"] = found
                    (box.scratch / f"go-{client.name}").unlink()
            return result

    result = Sandboxed(body, tmp_path).result()
    for name, found in result.items():
        print(name, {outcome: found.count(outcome) for outcome in set(found)})
    assert {name: set(found) for name, found in result.items()} == {name: {"HTTP/1.1 204"} for name in result}

# SPDX-License-Identifier: Apache-2.0
"""Only the path from a real server to the client is cut: the balancer detects it from the client's ACKs and resets the
stream (QDSR, section 6.2; docs/handoff.md, Unreachable real servers).
"""

from pathlib import Path
from typing import Any

import pytest

from cuts import dropping, last_received, times
from frontage_testbed.capture import Capture
from frontage_testbed.datacentre.addresses import QUIC_SERVER_PORT
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox
from qdsrgets import FIRST, TRIES, UNDER_WAY, Get, ResettingTestbed
from quicrounds import FAST, limit, wait_until
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

OBJECTS = (5_000_000, 6_000_000)
RATE = 8_000_000
"""Link rate in bit/s at which the downloads take ten seconds."""
QUEUE = 20_000
"""Bytes of the client link's queue: 20 ms of one stream."""
DETECTION_TIME = 0.8
"""Seconds without acknowledgments after which the balancer gives up a real server."""
SCHEDULING_DELAY = 3.0
"""Seconds for programs that wait for a processor."""


def both_send(testbed: QdsrTestbed) -> tuple[Get, Capture]:
    """Return two downloads on one connection from different real servers, and a capture on the client's host.

    While paths are established, the balancer may answer; then this tries another connection.
    """
    for number in range(TRIES):
        limit(testbed, RATE, QUEUE)
        (folder := testbed.scratch / f"client-{number}").mkdir()
        capture = Capture(testbed.clients[0], folder)
        packets, kept = testbed.packets_by_real_server(), testbed.kept_requests()
        get = Get(testbed, 0, (FIRST, *OBJECTS), command="page")

        def senders(before: dict[str, int] = packets) -> list[str]:
            return [name for name, count in testbed.packets_by_real_server().items() if count - before[name] > UNDER_WAY]

        wait_until(lambda: len(senders()) == 2 or testbed.kept_requests() > kept + 1 or not get.runs, "real servers send")  # noqa: B023
        if len(senders()) == 2:
            return get, capture
        get.kill()
        capture.end()
    raise AssertionError(f"in {TRIES} tries, no client got objects from two real servers")


def lose_path_to_client(testbed: QdsrTestbed) -> dict[str, Any]:
    """Cut the path of one real server to the client until the client has a result for both objects."""
    get, capture = both_send(testbed)
    server = testbed.real_servers[0]
    (folder := testbed.scratch / "server").mkdir()
    sent = Capture(testbed.servers[server.index], folder, what=f"udp src port {QUIC_SERVER_PORT}")
    wait_until(lambda: times(sent.file), "the real server sends")
    with dropping(testbed.servers[server.index], f"udp sport {QUIC_SERVER_PORT}"):
        wait_until(lambda: get.ended == 2, "the client gets a result")
        limit(testbed, FAST)
        lines = get.finish()
    capture.end()
    sent.end()
    (lost,) = (line for line in lines if line.get("error"))
    # The client's clock starts with its first packet.
    reset = times(capture.file)[0] + lost["seconds"]["total"]
    unreachable = testbed.agent(testbed.balancer).by("server", "frontage_cclb7_quic_real_server_unreachable_total")
    return {
        "lines": lines,
        "seconds": reset - last_received(sent.file, capture.file),
        "unreachable": unreachable,
        "server": server.name,
    }


@pytest.mark.parametrize("delay", [0.001, 0.05])
def test_real_server_without_path_to_client_is_abandoned(tmp_path: Path, delay: float) -> None:
    settings = Settings(servers=3, clients=1, policies=("cclb4",), delay=delay)
    parts = deployment(settings)

    def body(box: Sandbox) -> object:
        with parts.with_real_servers(ResettingTestbed, settings, box) as testbed:
            testbed.offer_objects([FIRST, *OBJECTS])
            testbed.wait_until_ready()
            return lose_path_to_client(testbed)

    result = Sandboxed(body, tmp_path).result()
    lost = [line for line in result["lines"] if not line["right"]]
    assert len(lost) == 1 and "H3_INTERNAL_ERROR" in lost[0]["error"], result["lines"]
    assert lost[0]["bytes"] > 0, "the response had begun"
    assert result["unreachable"] == {name: name == result["server"] for name in result["unreachable"]}, "the other one continues"
    print(f"delay {delay:g} s: the stream is reset {result['seconds']:.3f} s after the last received packet")
    assert DETECTION_TIME < result["seconds"] < DETECTION_TIME + 4 * delay + SCHEDULING_DELAY

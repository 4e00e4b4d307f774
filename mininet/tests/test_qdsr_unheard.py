"""The way from a real server to the client is cut, and no other: the client hears the balancer, and is told (QDSR,
section 6.2; docs/handoff.md, Failures).
"""

from pathlib import Path
from typing import Any

import pytest

from cuts import dropping, last_heard, times
from frontage_testbed.capture import Capture
from frontage_testbed.datacentre.addresses import QUIC_SERVER_PORT
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox
from qdsrgets import FIRST, TRIES, UNDER_WAY, Get
from quicrounds import FAST, limit, until
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

OBJECTS = (5_000_000, 6_000_000)
RATE = 8_000_000
"""Bits a second at which they are under way for ten seconds."""
QUEUE = 20_000
"""Octets that wait for the client's link: 20 ms of one stream before the other's news."""
PATIENCE = 0.8
"""Seconds of silence after which a real server is given up that the client does not hear."""
ROOM = 3.0
"""Seconds for programs that wait for a processor."""


def both_send(testbed: QdsrTestbed) -> tuple[Get, Capture]:
    """Two objects on one connection, each of which another real server sends; and what the client's host sees. While a
    connection's paths settle the balancer may answer, and then another is tried.
    """
    for number in range(TRIES):
        limit(testbed, RATE, QUEUE)
        (folder := testbed.scratch / f"client-{number}").mkdir()
        capture = Capture(testbed.clients[0], folder)
        packets, kept = testbed.packets_by_real_server(), testbed.kept_requests()
        get = Get(testbed, 0, (FIRST, *OBJECTS), command="page")

        def senders(before: dict[str, int] = packets) -> list[str]:
            return [name for name, count in testbed.packets_by_real_server().items() if count - before[name] > UNDER_WAY]

        until(lambda: len(senders()) == 2 or testbed.kept_requests() > kept + 1 or not get.runs, "real servers send")  # noqa: B023
        if len(senders()) == 2:
            return get, capture
        get.kill()
        capture.end()
    raise AssertionError(f"in {TRIES} tries, no two real servers sent to one client")


def not_heard(testbed: QdsrTestbed) -> dict[str, Any]:
    """Cut one real server's way to the client, until that has both objects or knows that there will be no more."""
    get, capture = both_send(testbed)
    server = testbed.real_servers[0]
    (folder := testbed.scratch / "server").mkdir()
    sent = Capture(testbed.servers[server.index], folder, what=f"udp src port {QUIC_SERVER_PORT}")
    until(lambda: times(sent.file), "it sends")
    with dropping(testbed.servers[server.index], f"udp sport {QUIC_SERVER_PORT}"):
        until(lambda: get.ended == 2, "the client is told")
        limit(testbed, FAST)
        lines = get.finish()
    capture.end()
    sent.end()
    (lost,) = (line for line in lines if line.get("error"))
    # The client's clock begins as it sends its first packet.
    told = times(capture.file)[0] + lost["seconds"]["total"]
    unheard = testbed.agent(testbed.balancer).by("server", "frontage_cclb7_quic_real_server_unheard_total")
    return {
        "lines": lines,
        "seconds": told - last_heard(sent.file, capture.file),
        "unheard": unheard,
        "server": server.name,
    }


@pytest.mark.parametrize("delay", [0.001, 0.05])
def test_a_real_server_that_the_client_does_not_hear_is_given_up(tmp_path: Path, delay: float) -> None:
    settings = Settings(servers=3, clients=1, policies=("cclb4",), delay=delay)
    found = deployment(settings)

    def body(box: Sandbox) -> object:
        with found.qdsr_testbed(settings, box) as testbed:
            testbed.offer_objects([FIRST, *OBJECTS])
            testbed.wait_until_ready()
            return not_heard(testbed)

    result = Sandboxed(body, tmp_path).result()
    lost = [line for line in result["lines"] if not line["right"]]
    assert len(lost) == 1 and "H3_INTERNAL_ERROR" in lost[0]["error"], result["lines"]
    assert lost[0]["bytes"] > 0, "it was under way"
    assert result["unheard"] == {name: name == result["server"] for name in result["unheard"]}, "the other goes on"
    print(f"delay {delay:g} s: the client is told {result['seconds']:.3f} s after the last packet that it heard")
    assert PATIENCE < result["seconds"] < PATIENCE + 4 * delay + ROOM

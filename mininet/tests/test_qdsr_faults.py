# SPDX-License-Identifier: Apache-2.0
"""Losses when the path between balancer and real server is cut, or the balancer dies (QDSR, section 6.2; docs/handoff.md,
Failures).
"""

from pathlib import Path
from typing import Any

import pytest

from cuts import times, without_link
from frontage_testbed.capture import Capture
from frontage_testbed.datacentre.addresses import QUIC_SERVER_PORT, ServerAddresses
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox
from qdsrgets import FIRST, LONG, Get, ResettingTestbed, meanwhile
from quicrounds import wait_until
from testbeds import Sandboxed, deployment, needs_root, only_long

pytestmark = [needs_root, only_long, pytest.mark.slow(seconds=77)]

SETTINGS = Settings(servers=3, clients=2, policies=("cclb4",))
TO_CLIENT = f"udp src port {QUIC_SERVER_PORT} and dst host "


def watch(testbed: QdsrTestbed, server: ServerAddresses, client: int, folder: str) -> Capture:
    """Capture what leaves a real server for a client, from the balancer's address."""
    (where := testbed.scratch / folder).mkdir()
    what = TO_CLIENT + testbed.client_addresses[client].address6
    return Capture(testbed.servers[server.index], where, what=what)


def real_server(testbed: QdsrTestbed, name: str) -> ServerAddresses:
    return next(server for server in testbed.real_servers if server.name == name)


def is_idle(testbed: QdsrTestbed, server: ServerAddresses) -> bool:
    """Return whether a real server has no response in progress."""
    return testbed.agent(server).total("frontage_real_server_active_flows") == 0


def cut_off(testbed: QdsrTestbed) -> dict[str, Any]:
    """Cut the path between the balancer and the first client's real server until both have noticed."""
    result: dict[str, Any] = {}

    def act(name: str, gets: list[Get]) -> None:
        server = real_server(testbed, name)
        capture = watch(testbed, server, 0, "cut-off")
        wait_until(lambda: times(capture.file), "the real server sends")
        with without_link(testbed, server):
            # Its object ends early, while the other client's continues.
            wait_until(lambda: gets[0].ended == 3, "the client gets an error, and another object from elsewhere")
            wait_until(lambda: is_idle(testbed, server), "the real server stops")
            result["sent"] = len(times(capture.file))
        result["capture"] = capture

    result["lines"] = meanwhile(testbed, act)
    capture = result.pop("capture")
    # The other client's object has arrived since.
    result["later"] = len(times(capture.file)) - result["sent"]
    capture.end()
    wait_until(lambda: testbed.connected_real_servers() == len(testbed.real_servers), "the path is restored")
    return result


def lose_balancer(testbed: QdsrTestbed) -> dict[str, Any]:
    """Kill and restart the balancer while both real servers send."""
    result: dict[str, Any] = {}

    def act(name: str, _gets: list[Get]) -> None:
        first = real_server(testbed, name)
        (second,) = (server for server in testbed.real_servers if server != first)
        captures = [watch(testbed, first, 0, "alone-0"), watch(testbed, second, 1, "alone-1")]
        wait_until(lambda: all(times(capture.file) for capture in captures), "both send")
        testbed.kill(testbed.balancer)
        wait_until(lambda: all(is_idle(testbed, server) for server in testbed.real_servers), "both stop")
        sent = [len(times(capture.file)) for capture in captures]
        testbed.restart_balancer()
        testbed.wait_until_ready()
        packets = (len(times(capture.file)) for capture in captures)
        result["later"] = [after - before for after, before in zip(packets, sent, strict=True)]
        result["again"] = Get(testbed, 0, (FIRST, FIRST)).finish()

    result["lines"] = meanwhile(testbed, act)
    return result


def test_cut_off_real_server_and_lost_balancer_stop_sending(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.with_real_servers(ResettingTestbed, SETTINGS, box) as testbed:
            testbed.offer_objects([FIRST, LONG])
            testbed.wait_until_ready()
            return {
                "link": cut_off(testbed),
                "again": meanwhile(testbed, lambda *_: None),
                "balancer": lose_balancer(testbed),
            }

    result = Sandboxed(body, tmp_path).result()
    link = result["link"]
    (broken, after), whole = link["lines"]
    assert "H3_INTERNAL_ERROR" in broken["error"] and broken["bytes"] > 0, broken
    assert after["right"] and after["seconds"]["handshake"] is None, "the connection continues"
    assert all(line["right"] for line in whole), "other connections are not affected"
    assert link["sent"] > 0 == link["later"], "the real server sends nothing after its grant is revoked"
    for lines in result["again"]:
        assert all(line["right"] for line in lines), "both real servers are available again"

    lost = result["balancer"]
    for long, _after in lost["lines"]:
        assert not long["right"] and long["error"] == "timeout", "connections end with their balancer"
    assert lost["later"] == [0, 0], "real servers send nothing without a balancer"
    assert all(line["right"] for line in lost["again"]), "the new balancer uses all real servers"

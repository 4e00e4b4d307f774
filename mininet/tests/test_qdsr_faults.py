"""What is lost when ways between client, balancer and real servers are cut, or the balancer dies (QDSR, section 6.2;
docs/handoff.md, Failures).
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
from qdsrgets import FIRST, LONG, Get, meanwhile
from quicrounds import until
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

SETTINGS = Settings(servers=3, clients=2, policies=("cclb4",))
TO_CLIENT = f"udp src port {QUIC_SERVER_PORT} and dst host "


def watch(testbed: QdsrTestbed, server: ServerAddresses, client: int, folder: str) -> Capture:
    """What leaves a real server for a client, in the balancer's name."""
    (where := testbed.scratch / folder).mkdir()
    what = TO_CLIENT + testbed.client_addresses[client].address6
    return Capture(testbed.servers[server.index], where, what=what)


def real_server(testbed: QdsrTestbed, name: str) -> ServerAddresses:
    return next(server for server in testbed.real_servers if server.name == name)


def is_idle(testbed: QdsrTestbed, server: ServerAddresses) -> bool:
    """Whether a real server has no answer under way."""
    return testbed.agent(server).total("frontage_real_server_active_flows") == 0


def cut_off(testbed: QdsrTestbed) -> dict[str, Any]:
    """Cut the way between the balancer and the real server that sends to the first client, until both have noticed."""
    about: dict[str, Any] = {}

    def act(name: str, gets: list[Get]) -> None:
        server = real_server(testbed, name)
        capture = watch(testbed, server, 0, "cut-off")
        until(lambda: times(capture.file), "it sends")
        with without_link(testbed, server):
            # Its object ends long before it would be whole, and the other client's goes on.
            until(lambda: gets[0].ended == 3, "the client is told, and gets another object from elsewhere")
            until(lambda: is_idle(testbed, server), "it stops sending")
            about["sent"] = len(times(capture.file))
        about["capture"] = capture

    about["lines"] = meanwhile(testbed, act)
    capture = about.pop("capture")
    # The other client's object has come since.
    about["later"] = len(times(capture.file)) - about["sent"]
    capture.end()
    until(lambda: testbed.connected_real_servers() == len(testbed.real_servers), "the way is there again")
    return about


def lose_balancer(testbed: QdsrTestbed) -> dict[str, Any]:
    """Kill the balancer while both real servers send, and start it again."""
    about: dict[str, Any] = {}

    def act(name: str, _gets: list[Get]) -> None:
        first = real_server(testbed, name)
        (second,) = (server for server in testbed.real_servers if server != first)
        captures = [watch(testbed, first, 0, "alone-0"), watch(testbed, second, 1, "alone-1")]
        until(lambda: all(times(capture.file) for capture in captures), "both send")
        testbed.kill(testbed.balancer)
        until(lambda: all(is_idle(testbed, server) for server in testbed.real_servers), "they stop sending")
        sent = [len(times(capture.file)) for capture in captures]
        testbed.restart_balancer()
        testbed.wait_until_ready()
        packets = (len(times(capture.file)) for capture in captures)
        about["later"] = [after - before for after, before in zip(packets, sent, strict=True)]
        about["again"] = Get(testbed, 0, (FIRST, FIRST)).finish()

    about["lines"] = meanwhile(testbed, act)
    return about


def test_what_is_cut_off_falls_silent_and_nothing_else_suffers(tmp_path: Path) -> None:
    found = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with found.qdsr_testbed(SETTINGS, box) as testbed:
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
    assert after["right"] and after["seconds"]["handshake"] is None, "the connection goes on"
    assert all(line["right"] for line in whole), "other connections do not notice"
    assert link["sent"] > 0 == link["later"], "nothing leaves once the grant is revoked"
    for lines in result["again"]:
        assert all(line["right"] for line in lines), "both real servers are there again"

    lost = result["balancer"]
    for long, _after in lost["lines"]:
        assert not long["right"] and long["error"] == "timeout", "connections end with their balancer"
    assert lost["later"] == [0, 0], "real servers send nothing without it"
    assert all(line["right"] for line in lost["again"]), "a new balancer has all of them"

# SPDX-License-Identifier: Apache-2.0
"""Real servers in the data centre: they answer through the switch from the balancer's address, cannot be reached from
outside, and when one dies only its current responses are lost.
"""

import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.capture import Capture
from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_SERVER_PORT, QUIC_VIP6
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.datacentre.quicagents import network_of
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.handoffconfig import LINK_PORT
from frontage_testbed.sandbox import Sandbox
from qdsrgets import FIRST, LONG, TRIES, Get, meanwhile
from quicrounds import BROKEN, drops, wait_until
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=17)]

OBJECTS = (400_000, 900_000, 500_000, 1_300_000)
SETTINGS = Settings(servers=3, clients=2, policies=("cclb4",))


def own_bytes(testbed: QdsrTestbed) -> int:
    """Return the bytes that the switch passed to clients from the balancer itself, without those of real servers."""
    status = testbed.status()
    whole, direct = (sum(s["down"]["bytes"] for s in status[part]) for part in ("servers", "real_servers"))
    return int(whole - direct)


def answered(testbed: QdsrTestbed, *options: str) -> dict[str, Any]:
    """Download some objects one after the other, and return who sent how much by the switch's counters."""
    for number in range(TRIES):
        packets, own, kept = testbed.packets_by_real_server(), own_bytes(testbed), testbed.kept_requests()
        (folder := testbed.scratch / f"capture{''.join(options)}-{number}").mkdir()
        capture = Capture(testbed.clients[0], folder)
        lines = Get(testbed, 0, (FIRST, *OBJECTS), *options).finish()
        capture.end()
        # While paths are established, the balancer answers itself: on a busy machine not only the first object.
        if testbed.kept_requests() - kept <= 1:
            break
    return {
        "lines": lines,
        "from": Counter(datagram.remote for datagram in capture.datagrams() if not datagram.up),
        "packets": {name: count - packets[name] for name, count in testbed.packets_by_real_server().items()},
        "own": own_bytes(testbed) - own,
    }


def kill(testbed: QdsrTestbed, name: str) -> None:
    """Kill a real server, and wait until the balancer has noticed; until then it may delegate requests to it."""
    up = len(testbed.real_servers) - 1
    testbed.kill(next(real_server for real_server in testbed.real_servers if real_server.name == name))
    wait_until(lambda: testbed.connected_real_servers() == up, "the balancer notices")


def visit(testbed: QdsrTestbed) -> dict[str, int]:
    """Return the drops after a client has sent packets to a real server's own ports."""
    for port in (LINK_PORT, QUIC_SERVER_PORT, QUIC_PORT):
        with network_of(testbed.clients[0].pid), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
            sender.sendto(bytes(1200), (testbed.real_servers[0].address6, port))
    wait_until(lambda: drops(testbed).get("real-server-external", 0) >= 3, "the switch counts the drops")
    return drops(testbed)


def test_real_servers_answer_and_fail_in_isolation(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.qdsr_testbed(SETTINGS, box) as testbed:
            testbed.offer_objects([FIRST, *OBJECTS, LONG])
            testbed.wait_until_ready()
            return {
                "at the VIP": answered(testbed),
                "by cookie": answered(testbed, "--follow"),
                "rebound": answered(testbed, f"--rebind-after={min(OBJECTS) // 2}"),
                "rotation": meanwhile(testbed, lambda *_: testbed.rotate_key(), "--follow"),
                "outside": visit(testbed),
                "killed": meanwhile(testbed, lambda name, _: kill(testbed, name)),
                "drops": drops(testbed),
                "said": [(testbed.scratch / "quic" / f"{s.name}.log").read_text() for s in testbed.server_addresses],
            }

    result = Sandboxed(body, tmp_path).result()
    for name in ("at the VIP", "by cookie", "rebound"):
        done = result[name]
        for line in done["lines"]:
            assert (line.get("error"), line["status"], line["right"]) == (None, 200, True), (name, line)
        assert all(count > 100 for count in done["packets"].values()), (name, done["packets"])
        assert done["own"] < sum(OBJECTS) / 20, (name, "the balancer sends no objects", done["own"])
        source = done["lines"][-1]["remote"][-1].removeprefix("[").partition("]")[0]
        assert (source != QUIC_VIP6) == (name == "by cookie"), (name, done["from"])
        assert done["from"][source] > 0.95 * sum(done["from"].values()), (name, "all packets come from one address", done)
    for lines in result["rotation"]:
        assert all(line["right"] and line.get("error") is None for line in lines), lines
    assert result["outside"]["real-server-external"] == 3, result["outside"]

    lost, whole = result["killed"]
    assert all(line["right"] for line in whole), whole
    resumed, later = lost
    assert resumed["right"] and later["right"], "the balancer completes the response of the killed real server"
    assert resumed.get("error") is None, resumed
    assert later["seconds"]["handshake"] is None, "the connection continues"
    dropped = result["drops"].keys() & (BROKEN | {"real-server-source"})
    assert not dropped, result["drops"]

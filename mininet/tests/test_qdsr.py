"""Real servers in the data centre: they answer through the switch, in the balancer's name; nobody outside reaches them;
and what one of them was sending when it dies is all that is lost.
"""

import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.addresses import QUIC_PORT, QUIC_SERVER_PORT, QUIC_VIP6
from frontage_demo.capture import Capture
from frontage_demo.handoff.configuration import LINK_PORT
from frontage_demo.qdsr import QdsrWorld
from frontage_demo.quicagents import network_of
from frontage_demo.sandbox import Sandbox
from frontage_demo.settings import Settings
from qdsrgets import FIRST, LONG, TRIES, Get, meanwhile
from quicrounds import BROKEN, drops, until
from worlds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

OBJECTS = (400_000, 900_000, 500_000, 1_300_000)
SETTINGS = Settings(servers=3, clients=2, policies=("cclb4",))


def own_bytes(world: QdsrWorld) -> int:
    """What the switch has passed to clients from the balancer itself: all in its name but what real servers sent."""
    status = world.status()
    whole, direct = (sum(s["down"]["bytes"] for s in status[part]) for part in ("servers", "real_servers"))
    return int(whole - direct)


def answered(world: QdsrWorld, *options: str) -> dict[str, Any]:
    """Some objects one after the other, and who sent how much of them, as the switch counts."""
    for number in range(TRIES):
        packets, own, kept = world.directly(), own_bytes(world), world.kept()
        (folder := world.scratch / f"capture{''.join(options)}-{number}").mkdir()
        capture = Capture(world.clients[0], folder)
        lines = Get(world, 0, (FIRST, *OBJECTS), *options).finish()
        capture.end()
        # While a connection's paths settle, the balancer answers itself: on a busy machine not the first object only.
        if world.kept() - kept <= 1:
            break
    return {
        "lines": lines,
        "from": Counter(datagram.remote for datagram in capture.datagrams() if not datagram.up),
        "packets": {name: count - packets[name] for name, count in world.directly().items()},
        "own": own_bytes(world) - own,
    }


def kill(world: QdsrWorld, name: str) -> None:
    """End a real server, until the balancer knows; it may hand requests over until then."""
    up = len(world.real_servers) - 1
    world.kill(next(real_server for real_server in world.real_servers if real_server.name == name))
    until(lambda: world.links() == up, "the balancer misses it")


def visit(world: QdsrWorld) -> dict[str, int]:
    """What becomes of packets that a client sends to a real server itself, wherever that listens."""
    for port in (LINK_PORT, QUIC_SERVER_PORT, QUIC_PORT):
        with network_of(world.clients[0].pid), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
            sender.sendto(bytes(1200), (world.real_servers[0].address6, port))
    until(lambda: drops(world).get("real-server-outside", 0) >= 3, "the switch drops them by name")
    return drops(world)


def test_real_servers_answer(tmp_path: Path) -> None:
    found = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with found.qdsr_world(SETTINGS, box) as world:
            world.offer_objects([FIRST, *OBJECTS, LONG])
            world.wait_until_ready()
            return {
                "at the VIP": answered(world),
                "by cookie": answered(world, "--follow"),
                "rebound": answered(world, f"--rebind-after={min(OBJECTS) // 2}"),
                "rotation": meanwhile(world, lambda *_: world.rotate_key(), "--follow"),
                "outside": visit(world),
                "killed": meanwhile(world, lambda name, _: kill(world, name)),
                "drops": drops(world),
                "said": [(world.scratch / "quic" / f"{s.name}.log").read_text() for s in world.server_addresses],
            }

    result = Sandboxed(body, tmp_path).result()
    for name in ("at the VIP", "by cookie", "rebound"):
        done = result[name]
        for line in done["lines"]:
            assert (line.get("error"), line["status"], line["right"]) == (None, 200, True), (name, line)
        assert all(count > 100 for count in done["packets"].values()), (name, done["packets"])
        assert done["own"] < sum(OBJECTS) / 20, (name, "the balancer sends no object", done["own"])
        source = done["lines"][-1]["remote"][-1].removeprefix("[").partition("]")[0]
        assert (source != QUIC_VIP6) == (name == "by cookie"), (name, done["from"])
        assert done["from"][source] > 0.95 * sum(done["from"].values()), (name, "all of them send from there", done)
    for lines in result["rotation"]:
        assert all(line["right"] and line.get("error") is None for line in lines), lines
    assert result["outside"]["real-server-outside"] == 3, result["outside"]

    lost, whole = result["killed"]
    assert all(line["right"] for line in whole), whole
    broken, later = lost
    assert later["right"] and not broken["right"], lost
    assert broken["error"] and broken["bytes"] > 0, broken
    assert later["seconds"]["handshake"] is None, "its connection goes on"
    dropped = result["drops"].keys() & (BROKEN | {"real-server-source"})
    assert not dropped, result["drops"]

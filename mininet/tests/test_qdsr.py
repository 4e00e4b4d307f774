"""Real servers in the data centre: they answer through the switch, in the balancer's name; nobody outside reaches them;
and what one of them was sending when it dies is all that is lost.
"""

import json
import socket
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.addresses import QUIC_PORT, QUIC_SERVER_PORT, QUIC_VIP6
from frontage_demo.capture import Capture
from frontage_demo.qdsr import LINK_PORT, QdsrWorld
from frontage_demo.quicagents import network_of
from frontage_demo.sandbox import Sandbox
from frontage_demo.settings import Settings
from quicrounds import BROKEN, FAST, PATIENCE, SLOW, drops, limit, until
from worlds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

FIRST = 1_000
"""An object that is asked for before others, while a connection's paths settle: the balancer may send it."""
OBJECTS = (400_000, 900_000, 500_000, 1_300_000)
LONG = 5_000_000
UNDER_WAY = 50
"""Packets of a real server's after which it sends more than a short object."""
SETTINGS = Settings(servers=3, clients=2, policies=("cclb4",))


class Get:
    """Objects that a client asks for on one connection, one after the other."""

    def __init__(self, world: QdsrWorld, client: int, sizes: tuple[int, ...], *options: str) -> None:
        self._world = world
        self._sizes = sizes
        name = f"get-{client}-{len(list(world.scratch.glob('get-*')))}"
        self._folder = world.scratch / name
        self._folder.mkdir()
        self._log = self._folder / "client.log"
        urls = [f"https://[{QUIC_VIP6}]:{QUIC_PORT}/{size}" for size in sizes]
        command = [world.h3_client, "get", *urls, "--insecure", "--paths", "3", f"--output={self._folder}", *options]
        with self._log.open("wb") as log:
            self._process: subprocess.Popen[bytes] = world.clients[client].spawn(command, stdout=log, stderr=log)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def finish(self) -> list[dict[str, Any]]:
        """What the client says of each, and whether its bytes are the object's."""
        self._process.wait(PATIENCE)
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        assert len(lines) == len(self._sizes), self._log.read_text()
        for line, size in zip(lines, self._sizes, strict=True):
            original = self._world.scratch / "objects" / str(size)
            saved = self._folder / str(size)
            line["right"] = saved.exists() and saved.read_bytes() == original.read_bytes()
        return lines


def own_bytes(world: QdsrWorld) -> int:
    """What the switch has passed to clients from the balancer itself: all in its name but what real servers sent."""
    status = world.status()
    whole, direct = (sum(s["down"]["bytes"] for s in status[part]) for part in ("servers", "real_servers"))
    return int(whole - direct)


def answered(world: QdsrWorld, *options: str) -> dict[str, Any]:
    """Some objects one after the other, and who sent how much of them, as the switch counts."""
    packets, own = world.directly(), own_bytes(world)
    (folder := world.scratch / f"capture{''.join(options)}").mkdir()
    capture = Capture(world.clients[0], folder)
    lines = Get(world, 0, (FIRST, *OBJECTS), *options).finish()
    capture.end()
    return {
        "lines": lines,
        "from": Counter(datagram.remote for datagram in capture.datagrams() if not datagram.up),
        "packets": {name: count - packets[name] for name, count in world.directly().items()},
        "own": own_bytes(world) - own,
    }


def meanwhile(world: QdsrWorld, act: Callable[[str], object], *options: str) -> list[list[dict[str, Any]]]:
    """A long object for each client, of which each real server sends one, and a short one after it. Once all are under
    way, `act` on the real server that sends to the first client.
    """
    limit(world, SLOW)
    before = world.directly()

    def sending() -> list[str]:
        return [name for name, count in world.directly().items() if count - before[name] > UNDER_WAY]

    gets = [Get(world, 0, (LONG, FIRST), *options)]
    until(lambda: len(sending()) == 1, "a real server sends")
    (first,) = sending()
    gets.append(Get(world, 1, (LONG, FIRST), *options))
    until(lambda: len(sending()) == 2, "the other one does, too, for it has less to do")
    act(first)
    assert gets[-1].runs, "the downloads ended before the disturbance did"
    limit(world, FAST)
    return [get.finish() for get in gets]


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
                "rotation": meanwhile(world, lambda _: world.rotate_key(), "--follow"),
                "outside": visit(world),
                "killed": meanwhile(world, lambda name: kill(world, name)),
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

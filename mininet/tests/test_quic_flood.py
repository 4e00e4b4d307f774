"""100,000 first Initials from forged addresses: who downloads does not notice, and who comes meanwhile gets in."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.addresses import CLIENTS6, COOKIE_PREFIX, EDGE_CLIENT6, EDGE_CLIENT_MAC, QUIC_PORT, QUIC_VIP6
from frontage_demo.metricsclient import parse
from frontage_demo.quic import QuicWorld
from frontage_demo.quicagents import METRICS
from frontage_demo.sandbox import Sandbox
from frontage_demo.settings import Settings
from frontage_demo.topology import INTERNET
from quicclients import PYTHON, Client
from quicrounds import BROKEN, UNDER_WAY, Rounds, limit, until
from worlds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

PACKETS, RATE = 100_000, 6_000
"""And how many a second."""
ACCESS = 2_000_000
"""Bits a second of a client's own link, far below what all else here can do: a download's pace is that of its link."""
BUFFER = 200_000
"""Bytes that wait for it: most of a second, so that a server or switch that pauses for less leaves no gap."""
SIZE = 6_750_000
BEFORE = 3.0
"""Seconds in which the downloads' pace is measured before the flood."""
SMALL = 10_000
MEMORY = 100_000_000
"""Most bytes that a server may ever have had."""
CLIENTS = (
    Client("gtlsclient", follows=True),
    Client("aioquic", follows=True),
    Client("curl", follows=False),
    Client("frontage-h3-client", follows=False),
)
LATE = Client("gtlsclient", follows=False, options=("--no-preferred-addr",))
SETTINGS = Settings(servers=3, clients=len(CLIENTS) + 1, policies=("cclb4",), bottleneck_rate=400_000_000)


def flood(world: QuicWorld) -> subprocess.Popen[bytes]:
    """From behind the router, ready to begin."""
    router = world.network[INTERNET]
    script = Path(__file__).with_name("flood.py")
    destination = ["edge", EDGE_CLIENT_MAC, QUIC_VIP6, QUIC_PORT]
    command = [PYTHON, script, *map(str, (*destination, PACKETS, RATE, SETTINGS.seed))]
    log = world.scratch / "flood.log"
    with log.open("wb") as out:
        process: subprocess.Popen[bytes] = router.spawn(command, stdout=out, stderr=out)
    until(lambda: "ready" in log.read_text() or process.poll() is not None, "the flood is ready")
    return process


def retries(world: QuicWorld) -> list[int]:
    """That each server has sent."""
    command = ["curl", "--silent", "http://{}:{}/metrics".format(*METRICS)]
    pages = [parse(host.run(command).stdout) for host in world.servers.values()]
    return [int(page.total("frontage_cclb7_quic_retries_total")) for page in pages]


def memory(world: QuicWorld) -> list[int]:
    """Most bytes that each server has had."""
    status = "".join(Path(f"/proc/{pid}/status").read_text() for pid in world.server_pids)
    return [1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]


def test_downloads_do_not_notice_a_flood(tmp_path: Path) -> None:
    found = deployment(SETTINGS)
    clients = [client for client in CLIENTS if client.missing is None]
    if not PYTHON.exists() or not clients:
        pytest.skip("no HTTP/3 clients: make build/stamps/quic-clients")

    def body(box: Sandbox) -> object:
        with found.quic_world(SETTINGS, box) as world:
            world.offer_objects([SIZE, SMALL])
            world.wait_until_ready()
            router = world.network[INTERNET]
            # Nobody is at the forged addresses.
            router.run(["ip", "-6", "route", "add", "blackhole", CLIENTS6])
            router.run(["ip", "-6", "route", "add", COOKIE_PREFIX, "via", EDGE_CLIENT6])
            limit(world, ACCESS, BUFFER)
            process = flood(world)
            rounds = Rounds(world, [*clients, LATE])
            downloads = [rounds.start(client, SIZE) for client in clients]
            assert all(d.wait_for(UNDER_WAY) for d in downloads), "not all downloads are under way"

            def pace(wait: Any) -> list[float]:
                before, begun = [d.received() for d in downloads], time.monotonic()
                wait()
                elapsed = time.monotonic() - begun
                return [8 * (d.received() - b) / elapsed for d, b in zip(downloads, before, strict=True)]

            quiet = pace(lambda: time.sleep(BEFORE))
            counted = world.edge.counters()
            process.send_signal(signal.SIGUSR1)
            late = rounds.prepare(LATE, SMALL)

            def meanwhile() -> None:
                until(lambda: min(retries(world)) > 0, "every server sends Retry")
                late.begin()
                process.wait()

            flooded = pace(meanwhile)
            assert all(d.runs for d in downloads), "the downloads ended before the flood did"
            steering = world.edge.counters().steering
            return {
                "flood": process.returncode,
                "pace": [quiet, flooded],
                "steering": {name: count - counted.steering.get(name, 0) for name, count in steering.items()},
                "late": rounds.finish(late),
                "retries": retries(world),
                "memory": memory(world),
                "downloads": [rounds.finish(d) for d in downloads],
                "drops": world.edge.counters().drops,
            }

    result = Sandboxed(body, tmp_path).result()
    print({name: result[name] for name in ("pace", "steering", "retries", "memory")})
    assert result["flood"] == 0
    for done in (*result["downloads"], result["late"]):
        assert (done["status"], done["right"], done["wrong"]) == (0, True, []), done
    assert all(len(done["sources"]) == 1 for done in result["downloads"]), "one connection each"
    assert not BROKEN & {name for name, count in result["drops"].items() if count}, result["drops"]
    for quiet, flooded in zip(*result["pace"], strict=True):
        assert flooded > 0.9 * quiet, result["pace"]
    assigned = sum(count for name, count in result["steering"].items() if name.startswith("assigned-"))
    hashed = result["steering"]["hashed-handshake"]
    # Beyond two thirds of the handshake table, many a place is another's: these go by their hash, and are counted.
    assert assigned + hashed >= PACKETS and hashed > 1000, result["steering"]
    # Each server holds what it may, and answers the rest with what costs it nothing.
    assert sum(result["retries"]) > PACKETS / 2, result["retries"]
    assert len(result["memory"]) == SETTINGS.servers and max(result["memory"]) < MEMORY, result["memory"]

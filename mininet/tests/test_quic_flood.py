# SPDX-License-Identifier: Apache-2.0
"""100,000 Initials from forged addresses: downloads keep their rate, and new clients get through."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.datacentre.addresses import CLIENTS6, COOKIE_PREFIX, EDGE_CLIENT6, EDGE_CLIENT_MAC, QUIC_PORT, QUIC_VIP6
from frontage_testbed.datacentre.quic import QuicTestbed
from frontage_testbed.datacentre.quicagents import METRICS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.metricsclient import parse
from frontage_testbed.sandbox import Sandbox
from quicclients import PYTHON, Client
from quicrounds import BROKEN, UNDER_WAY, Rounds, limit, wait_until
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=40)]

PACKETS, RATE = 100_000, 6_000
"""Number of packets, and packets per second."""
ACCESS = 2_000_000
"""Rate of a client's own link in bit/s: the bottleneck of each download."""
BUFFER = 200_000
"""Queue of that link in bytes: most of a second, so that shorter pauses of server or switch leave no gap."""
SIZE = 6_750_000
BEFORE = 3.0
"""Seconds in which the rate is measured before the flood."""
SMALL = 10_000
MEMORY = 200_000_000
"""Maximum peak memory of a server in bytes: twice what they need with a limit of handshakes, and a fraction without one."""
CLIENTS = (
    Client("gtlsclient", follows=True),
    Client("aioquic", follows=True),
    Client("curl", follows=False),
    Client("frontage-h3-client", follows=False),
)
LATE = Client("gtlsclient", follows=False, options=("--no-preferred-addr",))
SETTINGS = Settings(servers=3, clients=len(CLIENTS) + 1, policies=("cclb4",), bottleneck_rate=400_000_000)


def flood(testbed: QuicTestbed) -> subprocess.Popen[bytes]:
    """Start the flood program behind the router, and wait until it is ready."""
    router = testbed.network[INTERNET]
    script = Path(__file__).with_name("flood.py")
    destination = ["edge", EDGE_CLIENT_MAC, QUIC_VIP6, QUIC_PORT]
    command = [PYTHON, script, *map(str, (*destination, PACKETS, RATE, SETTINGS.seed))]
    log = testbed.scratch / "flood.log"
    with log.open("wb") as out:
        process: subprocess.Popen[bytes] = router.spawn(command, stdout=out, stderr=out)
    wait_until(lambda: "ready" in log.read_text() or process.poll() is not None, "the flood is ready")
    return process


def retries(testbed: QuicTestbed) -> list[int]:
    """Return the Retry packets of each server."""
    command = ["curl", "--silent", "http://{}:{}/metrics".format(*METRICS)]
    pages = [parse(host.run(command).stdout) for host in testbed.servers.values()]
    return [int(page.total("frontage_cclb7_quic_retries_total")) for page in pages]


def memory(testbed: QuicTestbed) -> list[int]:
    """Return the peak memory of each server in bytes."""
    status = "".join(Path(f"/proc/{pid}/status").read_text() for pid in testbed.server_pids)
    return [1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]


def test_downloads_keep_rate_during_flood(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)
    clients = [client for client in CLIENTS if client.missing is None]
    if not PYTHON.exists() or not clients:
        pytest.skip("no HTTP/3 clients: make build/stamps/quic-clients")

    def body(box: Sandbox) -> object:
        with parts.quic_testbed(SETTINGS, box) as testbed:
            testbed.offer_objects([SIZE, SMALL])
            testbed.wait_until_ready()
            router = testbed.network[INTERNET]
            # The forged addresses are unused.
            router.run(["ip", "-6", "route", "add", "blackhole", CLIENTS6])
            router.run(["ip", "-6", "route", "add", COOKIE_PREFIX, "via", EDGE_CLIENT6])
            limit(testbed, ACCESS, BUFFER)
            process = flood(testbed)
            rounds = Rounds(testbed, [*clients, LATE])
            downloads = [rounds.start(client, SIZE) for client in clients]
            assert all(d.wait_for(UNDER_WAY) for d in downloads), "not all downloads are in progress"

            def pace(wait: Any) -> list[float]:
                before, begun = [d.received() for d in downloads], time.monotonic()
                wait()
                elapsed = time.monotonic() - begun
                return [8 * (d.received() - b) / elapsed for d, b in zip(downloads, before, strict=True)]

            quiet = pace(lambda: time.sleep(BEFORE))
            counted = testbed.edge.counters()
            process.send_signal(signal.SIGUSR1)
            late = rounds.prepare(LATE, SMALL)

            def meanwhile() -> None:
                wait_until(lambda: min(retries(testbed)) > 0, "every server sends Retry")
                late.begin()
                process.wait()

            flooded = pace(meanwhile)
            assert all(d.runs for d in downloads), "the downloads ended before the flood did"
            steering = testbed.edge.counters().steering
            return {
                "flood": process.returncode,
                "pace": [quiet, flooded],
                "steering": {name: count - counted.steering.get(name, 0) for name, count in steering.items()},
                "late": rounds.finish(late),
                "retries": retries(testbed),
                "memory": memory(testbed),
                "downloads": [rounds.finish(d) for d in downloads],
                "drops": testbed.edge.counters().drops,
            }

    result = Sandboxed(body, tmp_path).result()
    print({name: result[name] for name in ("pace", "steering", "retries", "memory")})
    assert result["flood"] == 0
    for done in (*result["downloads"], result["late"]):
        assert (done["status"], done["right"], done["wrong"]) == (0, True, []), done
    assert all(len(done["sources"]) == 1 for done in result["downloads"]), "one connection each"
    assert not BROKEN & {name for name, count in result["drops"].items() if count}, result["drops"]
    for quiet, flooded in zip(*result["pace"], strict=True):
        assert flooded > 0.75 * quiet, result["pace"]
    assigned = sum(count for name, count in result["steering"].items() if name.startswith("assigned-"))
    hashed = result["steering"]["hashed-handshake"]
    # Above two thirds of the handshake table, many entries are taken: the switch then uses a hash, and counts that.
    assert assigned + hashed >= PACKETS and hashed > 1000, result["steering"]
    # Each server limits its handshakes and answers the rest with stateless Retry packets.
    assert sum(result["retries"]) > PACKETS / 2, result["retries"]
    assert len(result["memory"]) == SETTINGS.servers and max(result["memory"]) < MEMORY, result["memory"]

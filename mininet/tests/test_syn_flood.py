# SPDX-License-Identifier: Apache-2.0
"""A SYN flood against real kernels: with the defence, downloads keep their rate and new clients connect; without it, they do not.

Without the defence, the servers' own SYN cookies are off, too. With it, their kernels do not use them.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontage_testbed.datacentre.addresses import EDGE_CLIENT_MAC, HTTP_PORT, VIP4, VIP6
from frontage_testbed.datacentre.agents import Cclb7Agents
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.nodes import Namespace
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, deployment, needs_root, network_counters

pytestmark = [needs_root, pytest.mark.slow(seconds=90)]

RATE = int(os.environ.get("SYN_RATE", "4000"))
"""SYNs per second of the flood."""
WINDOWS, SECONDS = 5, 2.0
"""Each rate is the median of those in five windows of two seconds, so that a pause of the machine does not count."""
ACCESS = 2_000_000
"""Rate of a client's own link in bit/s: the bottleneck of each download."""
BUFFER = 200_000
"""Queue of that link in bytes, so that shorter pauses of server or switch leave no gap."""
DOWNLOADERS = 3
NEWCOMER, WITHOUT_TIMESTAMPS = 3, 4
SETTINGS = Settings(servers=2, clients=5, policies=("cclb4",), bottleneck_rate=400_000_000)
SIZE = 60_000_000
SMALL = 20_000
CONNECTIONS = 12
"""New connections in each phase."""
THRESHOLD, HOLD = 500, 3
FORGED = "198.19.0.0/16"
LIMIT = 60.0
"""Seconds that the test waits for anything."""

GET = """
import json, socket, sys, time
address, port, count, size, patience = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
results = []
for _ in range(count):
    begun = time.monotonic()
    try:
        with socket.create_connection((address, port), timeout=patience) as s:
            connected = time.monotonic() - begun
            s.settimeout(20)
            s.sendall(b"GET /objects/%d HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n" % size)
            data = b""
            while part := s.recv(65536):
                data += part
            results.append([connected, len(data.partition(b"\\r\\n\\r\\n")[2]) == size])
    except OSError as error:
        results.append([None, type(error).__name__])
print(json.dumps(results))
"""


@dataclass
class Bed:
    testbed: Testbed

    @property
    def servers(self) -> list[Namespace]:
        return list(self.testbed.servers.values())

    def prepare(self) -> None:
        """Give the agents the keys, and set up the router and the clients."""
        edge = self.testbed.edge
        keys = self.testbed.scratch / "keys.toml"
        edge.write_keys(keys)
        assert isinstance(self.testbed.agents, Cclb7Agents)
        self.testbed.agents.use_syn_keys(self.testbed.servers, keys)
        quiet = self.testbed.clients[WITHOUT_TIMESTAMPS]
        quiet.run(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_timestamps"])
        router = self.testbed.network[INTERNET]
        router.run(["ip", "route", "add", "blackhole", FORGED])
        link = ["root", "tbf", "rate", f"{ACCESS}bit", "burst", "6056", "limit", str(BUFFER)]
        for client in self.testbed.client_addresses[:DOWNLOADERS]:
            router.run(["tc", "qdisc", "replace", "dev", client.name, *link])

    def set_kernel_cookies(self, value: int) -> None:
        """Set whether the servers' kernels use SYN cookies when their queues are full."""
        for server in self.servers:
            server.run(["sh", "-c", f"echo {value} > /proc/sys/net/ipv4/tcp_syncookies"])

    def status(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.testbed.edge.frontage("status", "--json"))
        return result

    def defence(self) -> dict[str, Any]:
        """Return the status of the VIP's defence."""
        found: dict[str, Any] = self.status()["vips"][0]["syn_defence"]
        return found

    def set_mode(self, mode: str) -> None:
        """Set the mode of both VIPs, and wait until the switch has it."""
        document = yaml.safe_load(self.testbed.edge.config.read_text())
        for vip in document["vips"]:
            vip["syn_defence"] = {"mode": mode, "threshold": THRESHOLD, "hold": HOLD}
        self.testbed.edge.write_configuration(yaml.safe_dump(document, sort_keys=False))

        def installed() -> bool:
            status = self.status()
            difference = status["difference"]
            changes = sum(difference[kind] for kind in ("missing", "different", "unexpected"))
            return status["vips"][0]["syn_defence"]["mode"] == mode and not changes

        wait(installed, f"mode {mode} is installed")

    @contextmanager
    def flood(self) -> Iterator[dict[str, float]]:
        """Run the flood, and record the packets and the rate."""
        router = self.testbed.network[INTERNET]
        log = self.testbed.scratch / "flood.log"
        script = Path(__file__).with_name("synflood.py")
        command = [sys.executable, script, "edge", EDGE_CLIENT_MAC, VIP4, HTTP_PORT, RATE, SETTINGS.seed]
        with log.open("wb") as out:
            process: subprocess.Popen[bytes] = router.spawn(list(map(str, command)), stdout=out, stderr=out)
        wait(lambda: "ready" in log.read_text() or process.poll() is not None, "the flood is ready")
        process.send_signal(signal.SIGUSR1)
        begun, record = time.monotonic(), {}
        try:
            yield record
        finally:
            seconds = time.monotonic() - begun
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT)
            record["packets"] = int(log.read_text().split()[-1])
            record["rate"] = record["packets"] / seconds

    def get(self, client: int, vip: str, count: int = CONNECTIONS, patience: float = 20) -> list[list[Any]]:
        """Return the seconds to connect, and whether the download was complete, of new connections one by one."""
        arguments = [vip, str(HTTP_PORT), str(count), str(SMALL), str(patience)]
        out = self.testbed.clients[client].run([sys.executable, "-c", GET, *arguments], timeout=LIMIT + count * patience).stdout
        found: list[list[Any]] = json.loads(out)
        return found

    def half_open(self) -> list[int]:
        """Return the connections in SYN_RECV of each server."""
        command = ["ss", "-Htn", "state", "syn-recv"]
        return [len(server.run(command).stdout.splitlines()) for server in self.servers]

    def kernel(self, name: str) -> list[int]:
        return [network_counters(server)[name] for server in self.servers]

    def agents(self, name: str) -> int:
        """Return a counter of all agents."""
        assert isinstance(self.testbed.agents, Cclb7Agents)
        return sum(packets[name] for packets in self.testbed.agents.packets())


class Downloads:
    """One download on each of some clients, by curl."""

    def __init__(self, testbed: Testbed) -> None:
        self._files = [testbed.scratch / f"download-{i}" for i in range(DOWNLOADERS)]
        url = f"http://{VIP4}:{HTTP_PORT}/objects/{SIZE}"
        self._processes = [
            testbed.clients[i].spawn(["curl", "--silent", "--no-buffer", "--output", str(file), url])
            for i, file in enumerate(self._files)
        ]

    def received(self) -> list[int]:
        return [file.stat().st_size if file.exists() else 0 for file in self._files]

    def pace(self) -> float:
        """Return the bit/s of all downloads."""
        rates = []
        for _ in range(WINDOWS):
            before, begun = sum(self.received()), time.monotonic()
            time.sleep(SECONDS)
            rates.append(8 * (sum(self.received()) - before) / (time.monotonic() - begun))
        assert all(process.poll() is None for process in self._processes), "the downloads still run"
        return statistics.median(rates)

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def wait(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT:g} s: {what}"
        time.sleep(0.1)


def defended(bed: Bed, downloads: Downloads) -> dict[str, Any]:
    """Measure with the defence."""
    quiet = downloads.pace()
    calm = bed.get(NEWCOMER, VIP4)
    with bed.flood() as flood:
        flooded = downloads.pace()
        half_open = bed.half_open()
        new, new6 = bed.get(NEWCOMER, VIP4), bed.get(NEWCOMER, VIP6)
        without = bed.get(WITHOUT_TIMESTAMPS, VIP4)
    return {
        "pace": [quiet, flooded],
        "flood": flood,
        "half_open": half_open,
        "calm": calm,
        "new": new,
        "new6": new6,
        "without timestamps": without,
        "refused": bed.kernel("TcpExt.ListenDrops"),
        "cookies": bed.kernel("TcpExt.TCPReqQFullDoCookies"),
        "accepted": bed.agents("syn_cookie_accepted"),
        "packets": bed.defence()["packets"],
    }


def undefended(bed: Bed, downloads: Downloads) -> dict[str, Any]:
    """Measure without the defence, and without the kernels' own SYN cookies."""
    bed.set_kernel_cookies(0)
    quiet = downloads.pace()
    with bed.flood() as flood:
        wait(lambda: min(bed.half_open()) > 100, "the servers have half-open connections")
        flooded = downloads.pace()
        new = bed.get(NEWCOMER, VIP4, count=6, patience=2.5)
        half_open = bed.half_open()
    bed.set_kernel_cookies(1)
    refused = bed.kernel("TcpExt.ListenDrops")
    return {"pace": [quiet, flooded], "flood": flood, "new": new, "half_open": half_open, "refused": refused}


def automatic(bed: Bed) -> dict[str, Any]:
    """Measure the beginning and the end of the defence, both by the controller."""
    with bed.flood():
        begun = time.monotonic()
        wait(lambda: bed.defence()["answering"], "the switch answers SYNs")
        detected = time.monotonic() - begun
        bed.set_mode("auto")  # waits until the switch has what the controller decided
        half_open = bed.half_open()
        new = bed.get(NEWCOMER, VIP4)
        later = bed.half_open()
    begun = time.monotonic()
    wait(lambda: not bed.defence()["answering"], "the defence ends")
    ended = time.monotonic() - begun
    after = bed.get(NEWCOMER, VIP4, count=3)
    return {"detected": detected, "ended": ended, "new": new, "half_open": [half_open, later], "after": after}


def run_phases(bed: Bed) -> dict[str, Any]:
    result: dict[str, Any] = {}
    bed.set_mode("always")
    downloads = Downloads(bed.testbed)
    wait(lambda: min(downloads.received()) > 200_000, "the downloads are in progress")
    result["defended"] = defended(bed, downloads)
    print(json.dumps(result["defended"]), flush=True)
    bed.set_mode("off")
    result["undefended"] = undefended(bed, downloads)
    print(json.dumps(result["undefended"]), flush=True)
    bed.set_mode("auto")
    result["auto"] = automatic(bed)
    print(json.dumps(result["auto"]), flush=True)
    downloads.stop()
    return result


def test_downloads_and_new_clients_survive_a_flood(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.testbed(SETTINGS, box) as testbed:
            testbed.offer_objects([SIZE, SMALL])
            testbed.wait_until_ready()
            bed = Bed(testbed)
            bed.prepare()
            return run_phases(bed)

    result = Sandboxed(body, tmp_path).result()
    for phase in ("defended", "undefended"):
        quiet, flooded = result[phase]["pace"]
        print(f"{phase}: {result[phase]['flood']['rate']:.0f} SYNs/s, downloads at {100 * flooded / quiet:.1f} % of their rate")
    for name in ("calm", "new", "new6", "without timestamps"):
        print(f"{name}: connected after {1000 * statistics.median(times(result['defended'][name])):.1f} ms (median)")

    attacked = result["defended"]
    quiet, flooded = attacked["pace"]
    assert flooded >= 0.95 * quiet
    for name in ("calm", "new", "new6", "without timestamps"):
        assert all(complete is True for _, complete in attacked[name]), name
    assert attacked["half_open"] == [0, 0], "no SYN of the flood reaches a server"
    assert attacked["refused"] == attacked["cookies"] == [0, 0]
    assert attacked["accepted"] >= 4 * CONNECTIONS, "the agents create the connections"
    assert attacked["packets"]["passed"] == 0
    assert attacked["packets"]["answered"] > 10 * CONNECTIONS

    unprotected = result["undefended"]
    assert min(unprotected["half_open"]) > 100, "the flood fills the servers' queues"
    assert sum(unprotected["refused"]) > 0
    assert sum(complete is True for _, complete in unprotected["new"]) < 6, "new clients are refused"

    auto = result["auto"]
    assert all(complete is True for _, complete in [*auto["new"], *auto["after"]])
    assert sum(auto["half_open"][1]) <= sum(auto["half_open"][0]), "half-open connections do not grow once the switch answers"


def times(results: list[list[Any]]) -> list[float]:
    return [seconds for seconds, _ in results if seconds is not None]

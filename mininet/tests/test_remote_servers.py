# SPDX-License-Identifier: Apache-2.0
"""Remote servers: kernel TCP through tunnels over a network with an MTU of 1,500 bytes."""

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from frontage_testbed.datacentre import checker
from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4, VIP6
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.metricsclient import scrape
from frontage_testbed.nodes import Namespace
from frontage_testbed.remote.addresses import UnderlayAddresses
from frontage_testbed.remote.kinds import GENEVE, TUNNELS, VXLAN, Tunnel
from frontage_testbed.remote.testbed import RemoteNetwork, remote_quic_testbed, remote_testbed
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, deployment, long_except, needs_root, network_counters

pytestmark = [needs_root, pytest.mark.slow(seconds=20)]

REMOTE = 2
SETTINGS = Settings(servers=3, clients=2, policies=("cheetah-rr",), bottleneck_rate=60_000_000)
SMALL, LARGE = 20_000, 3_000_000
FRAGMENTS = ("Ip.FragCreates", "Ip.FragFails", "Ip.ReasmReqds", "Ip6FragCreates", "Ip6FragFails", "Ip6ReasmReqds")
CHECK = {"kind": "http", "path": "/health", "interval": 1.0, "timeout": 1.0, "rise": 2, "fall": 3}
NARROW = 1400
"""MTU of the network in bytes after the change."""

UPLOAD = """
import pathlib, socket, struct, sys, time
vip, go, done = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
connection = socket.create_connection((vip, {port}), timeout=20)
level, option = (socket.IPPROTO_IPV6, 24) if ":" in vip else (socket.IPPROTO_IP, 14)  # IPV6_MTU, IP_MTU
mtu = lambda: connection.getsockopt(level, option)
connection.sendall(b"POST /health HTTP/1.1\\r\\nHost: vip\\r\\nContent-Length: 900000\\r\\n\\r\\n" + bytes(1000))
connection.recv(1000)
before = mtu()
done.with_suffix(".ready").touch()
while not go.exists():
    time.sleep(0.05)
connection.sendall(bytes(500_000))
deadline = time.monotonic() + 20
while struct.unpack_from("I", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 24)[0]:
    assert time.monotonic() < deadline, "segments are not acknowledged"
    time.sleep(0.05)
print(before, mtu())
"""
"""Sends to a server before and after the network became narrower, and prints the path MTU before and after."""


def make_plan() -> list[Arrival]:
    sizes = [LARGE if i % 10 == 0 else SMALL for i in range(60)]
    return [Arrival(i, i / 30, i % SETTINGS.clients, size, size, "fin") for i, size in enumerate(sizes)]


def fragments(hosts: list[Namespace]) -> Counter[str]:
    """Return the sums of the kernels' counters of fragments."""
    total: Counter[str] = Counter()
    for host in hosts:
        counters = network_counters(host)
        counters |= {name: int(value) for name, value in map(str.split, host.run(["cat", "/proc/net/snmp6"]).stdout.splitlines())}
        total.update({name: counters[name] for name in FRAGMENTS})
    return total


def everyone(testbed: RemoteNetwork) -> list[Namespace]:
    return [*testbed.hosts, testbed.fabric, *testbed.servers.values(), *testbed.clients.values(), testbed.network["internet"]]


@pytest.mark.parametrize(
    "tunnel", long_except((VXLAN, GENEVE), TUNNELS), ids=lambda tunnel: f"{tunnel.kind} over IPv{tunnel.outer}"
)
def test_downloads_through_tunnels_lose_nothing(tmp_path: Path, tunnel: Tunnel) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan = make_plan()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        found = []
        with remote_testbed(parts, SETTINGS, box, REMOTE, tunnel) as testbed:
            testbed.offer_objects({a.wire_size for a in plan})
            testbed.wait_until_ready()
            for vip in (VIP4, VIP6):
                clients = Clients(testbed.clients, over_tcp(plan_file, vip), box.scratch / "clients.log")
                clients.run(lambda: None)
                found += [(o.outcome, o.server) for o in clients.outcomes]
            counters = testbed.edge.counters()
            return {
                "outcomes": found,
                "fragments": fragments(everyone(testbed)),
                "drops": counters.drops,
                "steering": counters.steering,
                "sizes": scrape(METRICS).by("result", "frontage_remote_server_segment_sizes_total"),
                "status": json.loads(testbed.edge.frontage("status", "--json")),
            }

    result = Sandboxed(body, tmp_path).result()
    print(result["steering"], result["drops"], result["sizes"])
    connections = 2 * len(make_plan())
    assert [outcome for outcome, _ in result["outcomes"]] == ["ok"] * connections
    assert {server for _, server in result["outcomes"]} == {"s1", "s2", "s3"}
    assert not any(result["fragments"].values()), result["fragments"]
    steering = result["steering"]
    # Every packet after a SYN finds its server by its cookie.
    assert steering["retrieved-cookie"] > 10 * connections
    assert not any(count for name, count in steering.items() if name.startswith(("hashed", "retrieved-table"))), steering
    assert not steering["too-long"]
    assert not any(count for name, count in result["drops"].items() if name.startswith(("tunnel", "remote", "no-tunnel")))
    # Two of three connections are with remote servers, each with a SYN and a SYN-ACK.
    assert result["sizes"]["clamped"] >= 2 * 2 * connections // 3
    assert not result["sizes"]["unknown"]
    kinds = {server["name"]: (server["encapsulation"] or {}).get("kind") for server in result["status"]["servers"]}
    assert kinds == {
        f"{name}-{vip}": kind for name, kind in (("s1", tunnel.kind), ("s2", tunnel.kind), ("s3", None)) for vip in ("web", "web6")
    }


def test_uploads_adapt_to_a_narrower_network(tmp_path: Path) -> None:
    settings = replace(SETTINGS, servers=1, clients=1)
    parts = deployment(settings)

    def body(box: Sandbox) -> object:
        with remote_testbed(parts, settings, box, 1, VXLAN) as testbed:
            testbed.wait_until_ready()
            go = box.scratch / "go"
            uploads = []
            for number, vip in enumerate((VIP4, VIP6)):
                output = box.scratch / f"upload{number}"
                with output.open("wb") as out:
                    words = [sys.executable, "-c", UPLOAD.format(port=HTTP_PORT), vip, str(go), str(output)]
                    uploads.append((output, testbed.clients[0].spawn(words, stdout=out, stderr=out)))
            testbed.wait_for(lambda: all(output.with_suffix(".ready").exists() for output, _ in uploads))
            testbed.set_mtu(NARROW)
            go.touch()
            for _, process in uploads:
                process.wait(60)
            return {
                "mtus": [output.read_text().split() for output, _ in uploads],
                "steering": testbed.edge.counters().steering,
            }

    result = Sandboxed(body, tmp_path).result()
    assert result["mtus"] == [["1500", str(NARROW - 50)]] * 2
    assert result["steering"]["too-long"] > 0


def healths() -> dict[str, set[str]]:
    """Return the health of each host's servers, for both VIPs."""
    result: dict[str, set[str]] = {}
    for sample in scrape(METRICS).samples:
        if sample.name == "frontage_server_health" and sample.value:
            result.setdefault(sample.labels["server"].partition("-")[0], set()).add(sample.labels["health"])
    return result


def test_health_checks_pass_through_tunnels(tmp_path: Path) -> None:
    pytest.importorskip("h11")
    parts = deployment(SETTINGS)
    healthy = {f"s{i + 1}": {"healthy"} for i in range(SETTINGS.servers)}

    def body(box: Sandbox) -> object:
        testbed = remote_testbed(parts, SETTINGS, box, REMOTE, VXLAN)
        checker.attach(testbed.edge, CHECK)
        with testbed:
            testbed.wait_until_ready()
            testbed.wait_for(lambda: healths() == healthy)
            # The router loses the host of s1 behind the tunnel.
            host = UnderlayAddresses(0)
            testbed.fabric.run(["ip", "route", "add", "unreachable", f"{host.host4}/32"])
            testbed.wait_for(lambda: healths() == healthy | {"s1": {"failed"}})
            testbed.fabric.run(["ip", "route", "del", f"{host.host4}/32"])
            testbed.wait_for(lambda: healths() == healthy)
            return testbed.edge.counters().steering["check"]

    assert Sandboxed(body, tmp_path).result() > 0


def test_quic_downloads_through_tunnels(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan = make_plan()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        with remote_quic_testbed(parts, SETTINGS, box, REMOTE, GENEVE) as testbed:
            testbed.offer_objects({a.wire_size for a in plan})
            testbed.wait_until_ready()
            clients = Clients(testbed.clients, testbed.generator(plan_file), box.scratch / "clients.log")
            clients.run(lambda: None)
            return {
                "outcomes": [(o.outcome, o.server) for o in testbed.with_servers(plan, clients.outcomes)],
                "fragments": fragments(everyone(testbed)),
                "steering": testbed.edge.counters().steering,
            }

    result = Sandboxed(body, tmp_path).result()
    assert [outcome for outcome, _ in result["outcomes"]] == ["ok"] * len(make_plan())
    assert {server for _, server in result["outcomes"]} == {"s1", "s2", "s3"}
    # Servers probe the path MTU: their hosts report packets that are too long for the tunnel, but fragment none.
    created = {name: count for name, count in result["fragments"].items() if not name.endswith("FragFails")}
    assert not any(created.values()), created
    steering = result["steering"]
    assert steering["retrieved-address"] > 0, "clients that follow their server's preferred address"
    assert steering["retrieved-cid"] + steering["retrieved-handshake"] > 0
    assert steering["insight"] > 0

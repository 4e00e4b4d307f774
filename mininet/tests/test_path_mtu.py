# SPDX-License-Identifier: Apache-2.0
"""Path MTU discovery: downloads pass a link of 1,280 bytes behind a router, because ICMP errors reach the servers that they
concern, also through the tunnels of remote servers. The servers do not probe.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from frontage_testbed.capture import Capture
from frontage_testbed.datacentre.addresses import HTTP_PORT, QUIC_PORT, QUIC_VIP4, VIP4, VIP6
from frontage_testbed.datacentre.servers import OBJECTS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.remote.kinds import GENEVE, TUNNELS, Tunnel
from frontage_testbed.remote.testbed import remote_quic_testbed, remote_testbed
from frontage_testbed.sandbox import Sandbox
from quicclients import Client
from quicrounds import SIZE as QUIC_SIZE
from quicrounds import Rounds
from testbeds import Sandboxed, deployment, long_except, needs_root, network_counters

pytestmark = [needs_root, pytest.mark.slow(seconds=20)]

MTU = 1280
"""MTU of the link between the router and the clients, in one direction. The clients' own MTU, and so their MSS, stays 1,500."""
DELAY = 0.1
"""Propagation delay of the switch's link towards the router, each way."""
ROUND_TRIP = 2 * DELAY
SIZE = 300_000
SYN_ACK = 94
"""Length in bytes of the longest frame without data: Ethernet, IPv6, and TCP with all options of a SYN-ACK."""
GIVE_UP = 8
"""Seconds after which a client gives up: several retransmission timeouts."""
SETTINGS = Settings(servers=2, clients=1, policies=("cclb4",), delay=DELAY, queue_delay=0.2)
QUIC_CLIENTS = (
    Client("gtlsclient", follows=True),
    Client("aioquic", follows=True),
    Client("curl", follows=False),
    Client("curl", follows=False, vip=QUIC_VIP4),
)


def narrow(testbed: Testbed) -> None:
    """Set the MTU of the links to the clients, and have the servers' kernels rely on ICMP errors."""
    for client in testbed.client_addresses:
        testbed.network[INTERNET].run(["ip", "link", "set", "dev", client.name, "mtu", str(MTU)])
    for server in testbed.servers.values():
        server.run(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_mtu_probing; echo 0 > /proc/sys/net/ipv4/ip_no_pmtu_disc"])


def largest_gap(pcap: Path, port: int, headers: int) -> float:
    """Return the longest time in seconds in which the client got no data: between two frames from `port`, or between the
    client's first data and the first frame from `port`. Frames of at most `headers` bytes have no data.
    """
    times: list[float] = []
    with RawPcapReader(str(pcap)) as reader:
        for frame, captured in reader:
            l4 = 54 if frame[12:14] == b"\x86\xdd" else 34
            is_from_service = int.from_bytes(frame[l4 : l4 + 2], "big") == port
            if captured.wirelen > headers and (is_from_service or not times):
                times.append(captured.sec + captured.usec / 1e6)
    return max(after - before for before, after in pairwise(times))


def tcp_download(testbed: Testbed, vip: str) -> dict[str, Any]:
    """Download once, and return what client, servers and switch saw of it."""
    host = testbed.clients[0]
    folder = testbed.scratch / f"download-{vip}"
    folder.mkdir()
    timeouts = [network_counters(server)["TcpExt.TCPTimeouts"] for server in testbed.servers.values()]
    before = testbed.edge.counters()
    capture = Capture(host, folder, what=f"tcp port {HTTP_PORT}")
    address = f"[{vip}]" if ":" in vip else vip
    url = f"http://{address}:{HTTP_PORT}{OBJECTS}/{SIZE}"
    curl = host.spawn(["curl", "--silent", "--max-time", str(GIVE_UP), "--output", folder / "object", url])
    status = curl.wait()
    capture.end()
    after = testbed.edge.counters()
    received = (folder / "object").read_bytes() if (folder / "object").exists() else b""
    return {
        "status": status,
        "received": len(received),
        "right": received == (testbed.scratch / "objects" / str(SIZE)).read_bytes(),
        "gap": largest_gap(capture.file, HTTP_PORT, SYN_ACK) if received else None,
        "timeouts": sum(network_counters(server)["TcpExt.TCPTimeouts"] for server in testbed.servers.values()) - sum(timeouts),
        "steering": {name: count - before.steering.get(name, 0) for name, count in after.steering.items()},
        "drops": {name: count - before.drops.get(name, 0) for name, count in after.drops.items()},
    }


def tcp_downloads(settings: Settings, directory: Path, tunnel: Tunnel | None = None) -> dict[str, dict[str, Any]]:
    """Download over IPv4 and IPv6. With a tunnel, all servers are remote."""
    parts = deployment(settings)

    def body(box: Sandbox) -> object:
        bed = parts.testbed(settings, box) if tunnel is None else remote_testbed(parts, settings, box, settings.servers, tunnel)
        with bed as testbed:
            testbed.offer_objects([SIZE])
            testbed.wait_until_ready()
            narrow(testbed)
            return {vip: tcp_download(testbed, vip) for vip in (VIP4, VIP6)}

    result: dict[str, dict[str, Any]] = Sandboxed(body, directory).result()
    return result


@pytest.mark.parametrize(
    "tunnel", long_except((None, GENEVE), (None, *TUNNELS)), ids=lambda tunnel: tunnel.kind if tunnel else "local"
)
def test_tcp_downloads_do_not_stall_on_a_narrow_link(tmp_path: Path, tunnel: Tunnel | None) -> None:
    for vip, done in tcp_downloads(SETTINGS, tmp_path, tunnel).items():
        assert (done["status"], done["right"]) == (0, True), (vip, done)
        assert done["steering"]["error-retrieved"] > 0, (vip, done)
        assert done["steering"].get("error-hashed", 0) == 0, (vip, "every error names its server", done)
        assert done["timeouts"] == 0, (vip, "the servers learn the MTU before a retransmission timeout", done)
        # The request takes a round trip. The retransmission of the lost first window may take another one.
        assert done["gap"] < 2.5 * ROUND_TRIP, (vip, done)


def test_tcp_downloads_stall_without_the_errors(tmp_path: Path) -> None:
    """The program for Tofino 2 drops the errors: the control of the test above."""
    for vip, done in tcp_downloads(SETTINGS.on("tna"), tmp_path).items():
        assert (done["status"], done["received"]) == (28, 0), (vip, "curl gave up without a byte", done)
        assert done["timeouts"] >= 2, (vip, done)
        assert done["drops"]["vip-no-service"] > 0, (vip, done)


@pytest.mark.parametrize("tunnel", long_except((GENEVE,), (None, GENEVE)), ids=lambda tunnel: tunnel.kind if tunnel else "local")
def test_quic_downloads_do_not_stall_on_a_narrow_link(tmp_path: Path, tunnel: Tunnel | None) -> None:
    settings = replace(SETTINGS, clients=len(QUIC_CLIENTS), bottleneck_rate=16_000_000)
    parts = deployment(settings)
    if missing := {client.missing for client in QUIC_CLIENTS} - {None}:
        pytest.skip(f"missing HTTP/3 clients: {', '.join(sorted(missing))}")

    def body(box: Sandbox) -> object:
        bed = (
            parts.quic_testbed(settings, box)
            if tunnel is None
            else remote_quic_testbed(parts, settings, box, settings.servers, tunnel)
        )
        with bed as testbed:
            testbed.offer_objects([QUIC_SIZE])
            testbed.wait_until_ready()
            narrow(testbed)
            rounds = Rounds(testbed, QUIC_CLIENTS)
            results = []
            for client in QUIC_CLIENTS:
                done = rounds.alone(client)
                pcap = testbed.scratch / f"download-{rounds.done}" / "capture.pcap"
                results.append(done | {"client": client.name, "gap": largest_gap(pcap, QUIC_PORT, 0)})
            return results

    for done in Sandboxed(body, tmp_path).result():
        assert (done["status"], done["right"]) == (0, True), done
        assert done["steering"]["error-retrieved"] > 0, done
        assert done["gap"] < 2.5 * ROUND_TRIP, done

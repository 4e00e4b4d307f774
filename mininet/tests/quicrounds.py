# SPDX-License-Identifier: Apache-2.0
"""QUIC downloads in a testbed, one at a time or in parallel, with disturbances."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, TypeVar

from frontage.config import load
from frontage.cookie import CookieKey
from frontage_testbed.datacentre.addresses import QUIC_VIP4, QUIC_VIP6
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.quic import QuicTestbed
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.load.download import Download
from frontage_testbed.metricsclient import scrape
from quicclients import Client

SIZE = 5_000_000
UNDER_WAY = 300_000
"""Bytes after which a download is past its handshake and far from its end."""
BROKEN = {"cookie-source", "cookie-forged", "server-gone", "quic-no-connection"}
"""Drop reasons of packets of established connections."""
TEST_TIMEOUT = 60.0
DOWNLOAD_TIMEOUT = 120.0
"""Seconds for a download over the slowest link."""
HANDSHAKE_SECONDS = 12.0
"""Time after which a switch has forgotten a handshake: the idle timeout of its entry, with a handshake and a tick."""
SLOW, FAST = 1_000_000, 1_000_000_000
"""Link rates in bit/s: one at which downloads outlast any disturbance, and one that limits nothing."""
BUFFER = 100_000
"""Default queue of a link in bytes."""


def from_new_ports(requests: Iterable[tuple[int, float, tuple[int, int]]]) -> set[int]:
    """Return the indices of the requests whose client had not used their port within ``HANDSHAKE_SECONDS``.

    A request is its index, its start in seconds, and its client and port. A switch sends the next connection from a port to the same server
    as the previous one, even if that server drains, as long as it has the entry of the previous handshake.
    """
    used: dict[tuple[int, int], float] = {}
    found = set()
    for index, started, socket in sorted(requests, key=lambda request: request[1]):
        if started - used.get(socket, -inf) > HANDSHAKE_SECONDS:
            found.add(index)
        used[socket] = started
    return found


T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str) -> T:
    """Wait until the condition is true, and return its value. `what` describes it."""
    deadline = time.monotonic() + TEST_TIMEOUT
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {TEST_TIMEOUT:g} s: {what}"
        time.sleep(0.05)
    return value


def limit(testbed: QuicTestbed, rate: int, buffer: int = BUFFER) -> None:
    """Set the rate (bit/s) and the queue (bytes) of each client's own link."""
    link = ["root", "tbf", "rate", f"{rate}bit", "burst", "6056", "limit", str(buffer)]
    for client in testbed.client_addresses:
        testbed.network[INTERNET].run(["tc", "qdisc", "replace", "dev", client.name, *link])


class Rounds:
    """Downloads in a testbed, and all cookie keys that it has had."""

    def __init__(self, testbed: QuicTestbed, clients: Sequence[Client]) -> None:
        self.testbed = testbed
        self.clients = clients
        self._keys: dict[int, CookieKey] = {}
        self.done = 0
        self.note_keys()

    def note_keys(self) -> None:
        self._keys |= {key.id: key for key in load(self.testbed.edge.config).cookie_keys}

    def prepare(self, client: Client, size: int = SIZE) -> Download:
        """Return a download that has not begun."""
        self.done += 1
        host = self.testbed.clients[self.clients.index(client)]
        folder = self.testbed.scratch / f"download-{self.done}"
        command = client.command(size, folder, self.testbed.h3_client)
        return Download(command, host, folder, self.testbed.scratch / "objects" / str(size), DOWNLOAD_TIMEOUT)

    def start(self, client: Client, size: int = SIZE) -> Download:
        download = self.prepare(client, size)
        download.begin()
        return download

    def meanwhile(self, act: Callable[[], object]) -> list[dict[str, Any]]:
        """Download with all clients, and call `act` once all downloads are in progress.

        The links are slow until it has returned, so that it disturbs every download.
        """
        limit(self.testbed, SLOW)
        downloads = [self.prepare(client) for client in self.clients]
        for download in downloads:
            download.begin()
        assert all(d.wait_for(UNDER_WAY) for d in downloads), "not all downloads are in progress"
        act()
        assert all(d.runs for d in downloads), "the downloads ended before the disturbance did"
        limit(self.testbed, FAST)
        return [self.finish(d) for d in downloads]

    def alone(self, client: Client, act: Callable[[], object] | None = None) -> dict[str, Any]:
        """Download with one client, and call `act` once the download is in progress.

        The result also has the steering counters, the drops, and the servers that received packets.
        """
        before, packets = self.testbed.edge.counters(), self.packets("up")
        download = self.start(client)
        if act is not None:
            assert download.wait_for(UNDER_WAY), "the download is not in progress"
            act()
            assert download.runs, "the download was too short to be disturbed"
        done = self.finish(download)
        after = self.testbed.edge.counters()
        return done | {
            "steering": {name: count - before.steering.get(name, 0) for name, count in after.steering.items()},
            "drops": {name: count - before.drops.get(name, 0) for name, count in after.drops.items()},
            "servers": [name for name, count in self.packets("up").items() if count > packets[name]],
        }

    def packets(self, direction: str) -> dict[str, int]:
        """Return the packets that the switch passed from each server ("down") or to it ("up"), by name."""
        metrics = scrape(METRICS)
        return {
            server.name: sum(
                int(metrics.total("frontage_server_packets_total", server=service.server_name(server), direction=direction))
                for service in FILMS
            )
            for server in self.testbed.server_addresses
        }

    def finish(self, download: Download) -> dict[str, Any]:
        """Return the result of a download, with the invalid addresses that it saw."""
        done = download.finish()
        self.note_keys()
        sources = defaultdict(set)
        for datagram in done.seen:
            if not datagram.up:
                sources[datagram.local[1]].add(datagram.remote)
        wrong = []
        for addresses in sources.values():
            if len(addresses) > 2:
                wrong.append(f"{len(addresses)} addresses: {sorted(addresses)}")
            cookies = addresses - {QUIC_VIP6, QUIC_VIP4}
            wrong += [address for address in cookies if not self.testbed.is_cookie_address(address, self._keys.values())]
        return {
            "command": " ".join(map(str, download.command)),
            "status": done.status,
            "right": done.right,
            "log": done.log,
            # By the client's port, which identifies a connection.
            "sources": {port: sorted(addresses) for port, addresses in sources.items()},
            "wrong": wrong,
        }


def drops(testbed: QuicTestbed) -> dict[str, int]:
    return {name: count for name, count in testbed.edge.counters().drops.items() if count}

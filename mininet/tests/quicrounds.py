"""Downloads over QUIC in a testbed, one at a time or many, while something is done to it."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
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
"""Bytes after which a download is past its handshake, and far from its end."""
BROKEN = {"cookie-source", "cookie-forged", "server-gone", "quic-no-connection"}
"""Why a packet of an established connection would be dropped."""
LIMIT = 60.0
PATIENCE = 120.0
"""Seconds for a download, however slow its link is."""
SLOW, FAST = 1_000_000, 1_000_000_000
"""Bits a second of a link at which downloads outlast whatever is done meanwhile, and of one that is no limit."""
BUFFER = 100_000
"""Bytes that wait for a link, if nothing else is said."""


T = TypeVar("T")


def until(condition: Callable[[], T], what: str) -> T:
    """Wait for something true, and return it."""
    deadline = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {LIMIT:g} s: {what}"
        time.sleep(0.05)
    return found


def limit(testbed: QuicTestbed, rate: int, buffer: int = BUFFER) -> None:
    """Each client's own link, in bits a second, and the bytes that wait for it."""
    link = ["root", "tbf", "rate", f"{rate}bit", "burst", "6056", "limit", str(buffer)]
    for client in testbed.client_addresses:
        testbed.network[INTERNET].run(["tc", "qdisc", "replace", "dev", client.name, *link])


class Rounds:
    """Downloads in a testbed, and the keys that it has had."""

    def __init__(self, testbed: QuicTestbed, clients: Sequence[Client]) -> None:
        self.testbed = testbed
        self.clients = clients
        self._keys: dict[int, CookieKey] = {}
        self.done = 0
        self.note_keys()

    def note_keys(self) -> None:
        self._keys |= {key.id: key for key in load(self.testbed.edge.config).cookie_keys}

    def prepare(self, client: Client, size: int = SIZE) -> Download:
        """A download that has not begun."""
        self.done += 1
        host = self.testbed.clients[self.clients.index(client)]
        folder = self.testbed.scratch / f"download-{self.done}"
        command = client.command(size, folder, self.testbed.h3_client)
        return Download(command, host, folder, self.testbed.scratch / "objects" / str(size), PATIENCE)

    def start(self, client: Client, size: int = SIZE) -> Download:
        download = self.prepare(client, size)
        download.begin()
        return download

    def meanwhile(self, act: Callable[[], object]) -> list[dict[str, Any]]:
        """All clients at a time, and `act` once each is under way. Their links are slow until it has returned, so that
        it comes in the midst of all downloads.
        """
        limit(self.testbed, SLOW)
        downloads = [self.prepare(client) for client in self.clients]
        for download in downloads:
            download.begin()
        assert all(d.wait_for(UNDER_WAY) for d in downloads), "not all downloads are under way"
        act()
        assert all(d.runs for d in downloads), "the downloads ended before the disturbance did"
        limit(self.testbed, FAST)
        return [self.finish(d) for d in downloads]

    def alone(self, client: Client, act: Callable[[], object] | None = None) -> dict[str, Any]:
        """One client, and `act` once its download is under way; with how the switch found its server and what each
        server was sent.
        """
        before, packets = self.testbed.edge.counters(), self.packets("up")
        download = self.start(client)
        if act is not None:
            assert download.wait_for(UNDER_WAY), "the download is not under way"
            act()
            assert download.runs, "the download was too short to be disturbed"
        done = self.finish(download)
        after = self.testbed.edge.counters()
        return done | {
            "found": {name: count - before.steering.get(name, 0) for name, count in after.steering.items()},
            "drops": {name: count - before.drops.get(name, 0) for name, count in after.drops.items()},
            "servers": [name for name, count in self.packets("up").items() if count > packets[name]],
        }

    def packets(self, direction: str) -> dict[str, int]:
        """That the switch has passed from each server ("down") or to it ("up"), by the server's name."""
        found = scrape(METRICS)
        return {
            server.name: sum(
                int(found.total("frontage_server_packets_total", server=service.server_name(server), direction=direction))
                for service in FILMS
            )
            for server in self.testbed.server_addresses
        }

    def finish(self, download: Download) -> dict[str, Any]:
        """What came of it, and what is wrong with the addresses that it saw."""
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
            # Of each port of the client's, that is, of each connection.
            "sources": {port: sorted(addresses) for port, addresses in sources.items()},
            "wrong": wrong,
        }


def drops(testbed: QuicTestbed) -> dict[str, int]:
    return {name: count for name, count in testbed.edge.counters().drops.items() if count}

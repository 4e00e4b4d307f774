"""QUIC through the whole data centre: clients that others wrote download from `frontage-cclb7-quic` through the switch,
and no connection breaks, whatever happens to keys, switch and servers meanwhile.
"""

import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from frontage import edit
from frontage.config import load, loads
from frontage.cookie import CookieKey
from frontage.keyfile import key_file, replace

from frontage_demo.addresses import COOKIE_PREFIX, QUIC_VIP4, QUIC_VIP6
from frontage_demo.edge import METRICS, EdgeCounters
from frontage_demo.metricsclient import scrape
from frontage_demo.quic import QuicWorld
from frontage_demo.sandbox import Sandbox
from frontage_demo.services import FILMS
from frontage_demo.settings import Settings
from quicclients import Client, Download, interface_id
from worlds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

SIZE = 5_000_000
UNDER_WAY = 300_000
"""Bytes after which a download is past its handshake, and far from its end."""
CLIENTS = (
    Client("gtlsclient", follows=True),
    Client("aioquic", follows=True),
    Client("curl", follows=False),
    Client("curl", follows=False, vip=QUIC_VIP4),
)
# All downloads at a time take some ten seconds, so that whatever is done to the world is done in their midst.
SETTINGS = Settings(servers=3, clients=len(CLIENTS), policies=("cclb4",), bottleneck_rate=16_000_000, queue_delay=0.1)
BROKEN = {"cookie-source", "cookie-forged", "server-gone", "quic-no-connection"}
"""Why a packet of an established connection would be dropped."""
LIMIT = 60.0


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT:g} s: {what}"
        time.sleep(0.05)


class Rounds:
    """Downloads in a world, and the keys that it has had."""

    def __init__(self, world: QuicWorld, clients: Sequence[Client]) -> None:
        self.world = world
        self.clients = clients
        self._keys: dict[int, CookieKey] = {}
        self.done = 0
        self.note_keys()

    def note_keys(self) -> None:
        self._keys |= {key.id: key for key in load(self.world.edge.config).cookie_keys}

    def start(self, client: Client) -> Download:
        self.done += 1
        host = self.world.clients[self.clients.index(client)]
        return Download(client, host, SIZE, self.world.scratch / f"download-{self.done}")

    def meanwhile(self, act: Callable[[], object]) -> list[dict[str, Any]]:
        """All clients at a time; `act` once each is under way."""
        downloads = [self.start(client) for client in self.clients]
        until(lambda: all(d.has_received(UNDER_WAY) for d in downloads), "all downloads are under way")
        assert all(d.runs for d in downloads), "the downloads were too short to be disturbed"
        act()
        assert any(d.runs for d in downloads), "the downloads ended before the disturbance did"
        return [self.finish(d) for d in downloads]

    def finish(self, download: Download) -> dict[str, Any]:
        """What came of it, and what is wrong with the addresses that it saw."""
        done = download.finish(self.world.scratch / "objects")
        self.note_keys()
        allowed = {QUIC_VIP6, QUIC_VIP4}
        wrong = []
        for sources in done["sources"].values():  # type: ignore[attr-defined]
            if len(sources) > 2:
                wrong.append(f"{len(sources)} addresses: {sources}")
            wrong += [source for source in sources if source not in allowed and not self._is_static(source)]
        return done | {"wrong": wrong}

    def _is_static(self, address: str) -> bool:
        """Whether an address is a static cookie of one of the servers, by a key that this world has had."""
        cookies = [key.open_ip6(interface_id(address)) for key in self._keys.values()]
        sids = {server.sid6 for server in self.world.server_addresses}
        return ip_address(address) in ip_network(COOKIE_PREFIX) and any(
            c is not None and not c.dynamic and c.sid in sids for c in cookies
        )


def drops(world: QuicWorld) -> dict[str, int]:
    return {name: count for name, count in world.edge.counters().drops.items() if count}


def difference(after: EdgeCounters, before: EdgeCounters) -> dict[str, int]:
    return {name: count - before.steering.get(name, 0) for name, count in after.steering.items()}


def alone(rounds: Rounds) -> list[dict[str, Any]]:
    """One client after the other, each with how the switch found its server."""
    results = []
    for client in rounds.clients:
        before = rounds.world.edge.counters()
        done = rounds.finish(rounds.start(client))
        results.append(done | {"follows": client.follows, "found": difference(rounds.world.edge.counters(), before)})
    return results


def servers_first(rounds: Rounds) -> dict[str, Any]:
    """A rotation the wrong way round: the servers seal with a key that the switch does not have, until it does."""
    edge = rounds.world.edge
    text = edit.rotate_key(edge.config.read_text(), edge.config.parent)

    def act() -> None:
        replace(rounds.world.key_file, key_file(loads(text, edge.config)))
        rounds.world.reload_keys()
        until(lambda: drops(rounds.world).get("cookie-source", 0) > 0, "what the switch has no key for is dropped")
        replace(edge.config, text)

    return {"downloads": rounds.meanwhile(act), "drops": drops(rounds.world)}


def restart(rounds: Rounds) -> list[dict[str, Any]]:
    """The switch forgets everything, and is programmed again."""

    def act() -> None:
        rounds.world.edge.stop_switch()
        rounds.world.edge.start_switch()

    return rounds.meanwhile(act)


def packets(world: QuicWorld) -> dict[str, int]:
    """That each server has sent, by its name."""
    found = scrape(METRICS)
    return {
        server.name: sum(
            int(found.total("frontage_server_packets_total", server=service.server_name(server), direction="down"))
            for service in FILMS
        )
        for server in world.server_addresses
    }


def drain(rounds: Rounds) -> dict[str, Any]:
    """The server that is sending most gets nothing new."""
    world = rounds.world
    before = packets(world)
    drained: list[str] = []

    def act() -> None:
        sent = {name: count - before[name] for name, count in packets(world).items()}
        busiest = max(world.server_addresses, key=lambda server: sent[server.name])
        world.edge.drain(busiest)
        drained.append(busiest.name)

    def answered() -> int:
        until(lambda: sum(world.answers().values()) == rounds.done, "every answer is in its server's log")
        return world.answers()[drained[0]]

    downloads = rounds.meanwhile(act)
    counts = [answered()]
    later = [rounds.finish(rounds.start(client)) for client in rounds.clients]
    return {"downloads": downloads, "later": later, "answered": [*counts, answered()]}


def test_downloads_through_the_data_centre(tmp_path: Path) -> None:
    found = deployment(SETTINGS)
    clients = []
    for client in CLIENTS:
        if client.missing is None:
            clients.append(client)
        else:
            print(f"skipped {client.name}: {client.missing}")
    if not clients:
        pytest.skip("no HTTP/3 client: " + ", ".join(sorted({f"{c.name} ({c.missing})" for c in CLIENTS})))

    def body(box: Sandbox) -> object:
        with found.quic_world(SETTINGS, box) as world:
            world.offer_objects([SIZE])
            world.wait_until_ready()
            rounds = Rounds(world, clients)
            return {
                "alone": alone(rounds),
                "rotation": {"downloads": rounds.meanwhile(world.rotate_key), "drops": drops(world)},
                "servers first": servers_first(rounds),
                "restart": restart(rounds),
                "drain": drain(rounds),
            }

    result = Sandboxed(body, tmp_path).result()
    downloads = {
        "alone": result["alone"],
        "rotation": result["rotation"]["downloads"],
        "servers first": result["servers first"]["downloads"],
        "restart": result["restart"],
        "drain": result["drain"]["downloads"],
        "after the drain": result["drain"]["later"],
    }
    for name, dones in downloads.items():
        assert len(dones) == len(clients), name
        for done in dones:
            assert (done["status"], done["right"]) == (0, True), (name, done)
            assert len(done["sources"]) == 1, (name, "one connection each", done)
            assert done["wrong"] == [], (name, done)

    for done in result["alone"]:
        address, cid = done["found"].get("retrieved-address", 0), done["found"].get("retrieved-cid", 0)
        if done["follows"]:
            assert address > cid, done
            assert sum(map(len, done["sources"].values())) == 2, done
        else:
            assert address == 0 and cid > 100, done
            assert sum(map(len, done["sources"].values())) == 1, done

    # The switch first, the servers then: nothing of any connection is dropped.
    assert not BROKEN & result["rotation"]["drops"].keys(), result["rotation"]["drops"]
    assert result["servers first"]["drops"]["cookie-source"] > 0
    before, after = result["drain"]["answered"]
    assert before == after, "a server that drains answers no new connection"

# SPDX-License-Identifier: Apache-2.0
"""Servers move clients under load during their connections, and hand them over to each other (docs/moves.md).

No request fails, not even after key rotations that would make the clients' addresses invalid. Clients without the extension
finish their downloads.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from frontage_demo.moves import page
from frontage_demo.moves.measure import CONNECTIONS, ORDERS, SETTINGS, Moves, last_packets, measure
from frontage_demo.moves.measure import SIZE as SMALL
from frontage_demo.moves.testbed import MovingTestbed
from frontage_testbed.capture import Datagram
from frontage_testbed.datacentre.addresses import QUIC_VIP6
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.load.download import Download
from frontage_testbed.sandbox import Sandbox
from quicclients import Client
from quicrounds import FAST, SIZE, SLOW, UNDER_WAY, Rounds, limit, wait_until
from testbeds import Sandboxed, deployment, needs_root

ROTATIONS = 2
UNMODIFIED = (Client("aioquic", follows=False), Client("curl", follows=False))


@needs_root
@pytest.mark.slow(seconds=75)
def test_clients_move_and_change_servers_without_a_failed_request(tmp_path: Path) -> None:
    settings = replace(SETTINGS, clients=1 + len(UNMODIFIED))
    parts = deployment(settings)
    if missing := {client.missing for client in UNMODIFIED} - {None}:
        pytest.skip(f"missing HTTP/3 clients: {', '.join(sorted(missing))}")

    def body(box: Sandbox) -> object:
        edge = parts.edge(settings, box, services=FILMS)
        with MovingTestbed(settings, box.scratch, edge, parts.quic_agent, parts.h3_client) as testbed:
            testbed.offer_objects([SIZE, SMALL])
            testbed.wait_until_ready()
            rounds = Rounds(testbed, (Client("frontage-h3-client", follows=False), *UNMODIFIED))
            downloads: list[Download] = []

            def rotate_keys() -> None:
                # Two rotations make the cookie addresses of the first key invalid.
                for rotation in range(1, ROTATIONS + 1):
                    testbed.rotate_key()
                    count = CONNECTIONS * (ORDERS + rotation)
                    wait_until(partial(testbed.have_moved, count), "clients have an address of the newest key")

            def begin_downloads() -> None:
                rotate_keys()
                limit(testbed, SLOW)
                downloads.extend(rounds.start(client) for client in UNMODIFIED)
                assert all(download.wait_for(UNDER_WAY) for download in downloads), "the downloads are in progress"
                limit(testbed, FAST)

            moves = measure(testbed, begin_downloads)
            return asdict(moves), [(done["status"], done["right"]) for done in map(rounds.finish, downloads)]

    moves, downloads = Sandboxed(body, tmp_path).result()
    found = Moves(**moves)
    assert found.failures == {} and found.requests > CONNECTIONS * ORDERS
    assert (found.completed, found.failed) == (CONNECTIONS * (ORDERS + ROTATIONS), 0)
    assert found.reopened == found.handed_over > 0
    # Every connection makes requests all the time, so it has packets at the old address after each order.
    assert len(found.delays) >= CONNECTIONS * ORDERS
    assert downloads == [[0, True]] * len(UNMODIFIED)


def test_last_packets_count_from_their_order_to_the_next() -> None:
    def packet(when: float, port: int, remote: str) -> tuple[float, Datagram]:
        return when, Datagram(True, ("2001:db8::1", port), remote, 100, b"")

    cookie = "2001:db8:ffff::1"
    seen = [
        packet(0.5, 1, QUIC_VIP6),
        packet(1.1, 1, QUIC_VIP6),
        packet(1.3, 1, QUIC_VIP6),
        packet(1.2, 2, QUIC_VIP6),
        packet(1.4, 1, cookie),
        packet(2.5, 1, cookie),
        packet(2.6, 1, QUIC_VIP6),
    ]
    assert last_packets(seen, [(1.0, True), (2.0, False)]) == pytest.approx([0.3, 0.2, 0.5])


def test_results_replace_the_previous_ones(tmp_path: Path) -> None:
    file = tmp_path / "moves.md"
    file.write_text(f"before\n{page.BEGIN}\nstale\n{page.END}\nafter\n")
    moves = Moves(1200, {}, 100, 0, 7, 7, [0.05, 0.1, 0.2], 0.4)
    page.write(page.markdown(moves), file)
    page.plot(moves, tmp_path)
    text = file.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale" not in text
    assert "| requests | 1,200 |" in text and "median | 100 ms |" in text
    assert (tmp_path / page.PLOT).read_text().startswith("<?xml")

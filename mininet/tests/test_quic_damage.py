# SPDX-License-Identifier: Apache-2.0
"""Damaged packets during downloads, with their addresses and connection IDs: switch and servers keep working, and every
download is complete. Packets of another QUIC version get a Version Negotiation.
"""

import json
import sys
from pathlib import Path

import pytest

from frontage_testbed.capture import WHOLE, Capture
from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP4, QUIC_VIP6
from frontage_testbed.datacentre.settings import TARGETS, Settings
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.sandbox import Sandbox
from quicclients import Client
from quicrounds import UNDER_WAY, Rounds, drops, limit
from testbeds import Sandboxed, deployment, long_except, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=35)]

HERE = Path(__file__).parent
ACCESS = 2_000_000
"""Rate of a client's own link in bit/s, low enough for long downloads."""
SIZE, SMALL = 4_000_000, 100_000
PACKETS, RATE = 20_000, 4_000
CLIENTS = (
    Client("gtlsclient", follows=True),
    Client("curl", follows=False),
    Client("curl", follows=False, vip=QUIC_VIP4),
    Client("frontage-h3-client", follows=False),
)
SETTINGS = Settings(servers=3, clients=len(CLIENTS), policies=("cclb4",))
EXPECTED = {"quic-header", "quic-small", "quic-no-connection"}
"""Drop reasons of damaged packets; the others reach servers, mostly through the handshake table."""


@pytest.mark.parametrize("target", long_except(("softswitch", "bmv2"), TARGETS))
def test_damaged_packets_do_not_disturb_downloads(tmp_path: Path, target: str) -> None:
    settings = SETTINGS.on(target)
    parts = deployment(settings)
    clients = [client for client in CLIENTS if client.missing is None]
    if not clients:
        pytest.skip("no HTTP/3 client is installed")

    def body(box: Sandbox) -> object:
        with parts.quic_testbed(settings, box) as testbed:
            testbed.offer_objects([SIZE, SMALL])
            testbed.wait_until_ready()
            router = testbed.network[INTERNET]
            limit(testbed, ACCESS)
            rounds = Rounds(testbed, clients)
            downloads = [rounds.prepare(client, SIZE) for client in clients]
            (sample := testbed.scratch / "sample").mkdir()
            capture = Capture(router, sample, "edge", WHOLE, f"udp dst port {QUIC_PORT}")
            for download in downloads:
                download.begin()
            assert all(d.wait_for(UNDER_WAY) for d in downloads), "not all downloads are in progress"
            capture.end()
            before = drops(testbed)
            router.run([sys.executable, HERE / "mutants.py", "edge", capture.file, PACKETS, RATE, SETTINGS.seed])
            assert all(d.runs for d in downloads), "the downloads ended before the damage did"
            after = drops(testbed)
            negotiate = [sys.executable, HERE / "negotiate.py"]
            return {
                "dropped": {name: count - before.get(name, 0) for name, count in after.items()},
                "downloads": [rounds.finish(d) for d in downloads],
                "versions": [
                    json.loads(testbed.clients[0].run([*negotiate, vip, QUIC_PORT]).stdout) for vip in (QUIC_VIP6, QUIC_VIP4)
                ],
                "later": [rounds.finish(rounds.start(client, SMALL)) for client in clients],
                "answered": sum(testbed.answers().values()),
                "servers": [Path(f"/proc/{pid}/comm").read_text().strip() for pid in testbed.server_pids],
                "said": [(testbed.scratch / "quic" / f"{s.name}.log").read_text() for s in testbed.server_addresses],
            }

    result = Sandboxed(body, tmp_path).result()
    print(result["dropped"], result["versions"])
    for done in (*result["downloads"], *result["later"]):
        assert (done["status"], done["right"], done["wrong"]) == (0, True, []), done
    assert result["answered"] == len(result["downloads"] + result["later"]), "one request per client"
    assert not EXPECTED - {name for name, count in result["dropped"].items() if count > 100}, result["dropped"]
    assert sum(result["dropped"].values()) < PACKETS * 0.9, "some packets reach servers"
    assert len(result["servers"]) == SETTINGS.servers and set(result["servers"]) == {"frontage-cclb7-"}
    assert result["said"] == [""] * SETTINGS.servers, "no server logged an error"
    for answers in result["versions"]:
        assert answers and all(1 in versions for versions in answers), answers

# SPDX-License-Identifier: Apache-2.0
"""Early data: a client that returns sends its request with its first packet (0-RTT, docs/handoff.md).

A real server responds before the handshake is complete. The client's address is validated by the token of an earlier connection,
or of a Retry.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox
from qdsrgets import TRIES
from quicclients import PYTHON, SCRIPTS
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

OBJECT = 60_000
VISITS = 4
SETTINGS = Settings(servers=3, clients=1, policies=("cclb4",), delay=0.05)
"""The delay is long enough that the server begins with a request before the handshake is complete."""
NGTCP2 = "gtlsclient"


class EarlyTestbed(QdsrTestbed):
    fields = "early_data = true\nmax_unvalidated_handshakes = 0\n"
    """Each client without a valid token gets a Retry."""

    def counts(self) -> dict[str, int]:
        """Return counters of the balancer, and the packets that the switch passed from real servers to clients."""
        page = self.agent(self.balancer)
        return {
            "early": int(page.total("frontage_cclb7_quic_early_requests_total")),
            "retries": int(page.total("frontage_cclb7_quic_retries_total")),
            "kept": self.kept_requests(),
            "packets": sum(self.packets_by_real_server().values()),
        }


def counted(testbed: EarlyTestbed, *command: str) -> dict[str, Any]:
    """Run a client, and return its output and what the balancer and the switch have counted since."""
    before = testbed.counts()
    done = testbed.clients[0].run(command)
    return {name: count - before[name] for name, count in testbed.counts().items()} | {"output": done.stdout + done.stderr}


def own_client(testbed: EarlyTestbed, folder: Path) -> dict[str, Any]:
    url = f"https://[{QUIC_VIP6}]:{QUIC_PORT}/{OBJECT}"
    seen = counted(testbed, testbed.h3_client, "get", *[url] * VISITS, "--insecure", "--early-data", f"--output={folder}")
    lines = [json.loads(line) for line in seen.pop("output").splitlines() if line.startswith("{")]
    original = (testbed.scratch / "objects" / str(OBJECT)).read_bytes()
    return seen | {
        "accepted": [line.get("early_data") for line in lines],
        "bytes": [line["bytes"] for line in lines],
        "right": (folder / str(OBJECT)).read_bytes() == original,
    }


def aioquic(testbed: EarlyTestbed, folder: Path) -> dict[str, Any]:
    """Let aioquic visit, and return with the ticket and the token of the first visit."""
    file = folder / "body"
    url = f"https://[{QUIC_VIP6}]:{QUIC_PORT}/{OBJECT}"
    seen = counted(testbed, str(PYTHON), str(SCRIPTS / "return_aioquic.py"), str(file), url)
    return seen | {"right": file.read_bytes() == (testbed.scratch / "objects" / str(OBJECT)).read_bytes()}


class Ngtcp2:
    """The client of ngtcp2, which returns with the ticket and transport parameters of an earlier visit.

    Before version 0.14, it does not use the tokens that it saves.
    """

    def __init__(self, testbed: EarlyTestbed, folder: Path) -> None:
        self._testbed = testbed
        self._folder = folder
        self._original = (testbed.scratch / "objects" / str(OBJECT)).read_bytes()

    def visit(self) -> dict[str, Any]:
        (self._folder / str(OBJECT)).unlink(missing_ok=True)
        files = [f"--{name}-file={self._folder / name}" for name in ("session", "tp")]
        url = f"https://[{QUIC_VIP6}]:{QUIC_PORT}/{OBJECT}"
        words = [NGTCP2, *files, "--exit-on-all-streams-close", f"--download={self._folder}", str(QUIC_VIP6), str(QUIC_PORT), url]
        seen = counted(self._testbed, *words)
        return seen | {"right": (self._folder / str(OBJECT)).read_bytes() == self._original}

    def renew(self) -> None:
        """Visit until the client has an unused ticket. It ends with its response, which may arrive before the ticket."""
        ticket = self._folder / "session"
        ticket.unlink(missing_ok=True)
        for _ in range(TRIES):
            self.visit()
            if ticket.exists():
                return
        raise AssertionError(f"no ticket in {TRIES} visits")


def ngtcp2_visits(testbed: EarlyTestbed, folder: Path) -> dict[str, dict[str, Any]]:
    """Return what was counted during visits in different circumstances; the last one follows a restart of the balancer."""
    client = Ngtcp2(testbed, folder)
    visits = {"new": client.visit()}
    client.renew()
    visits["with a ticket"] = client.visit()
    client.renew()
    testbed.kill(testbed.balancer)
    testbed.restart_balancer()
    testbed.wait_until_ready()
    return visits | {"after a restart": client.visit()}


def test_real_servers_respond_to_early_requests(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.with_real_servers(EarlyTestbed, SETTINGS, box) as testbed:
            testbed.offer_objects([OBJECT])
            testbed.wait_until_ready()
            folders = [box.scratch / name for name in ("own", "aioquic", "ngtcp2")]
            for folder in folders:
                folder.mkdir()
            return {
                "own": own_client(testbed, folders[0]),
                "aioquic": aioquic(testbed, folders[1]) if PYTHON.exists() else None,
                "ngtcp2": ngtcp2_visits(testbed, folders[2]) if shutil.which(NGTCP2) else None,
            }

    seen = Sandboxed(body, tmp_path).result()
    own = seen["own"]
    # The client gets its first ticket and token during the first visit.
    assert own["accepted"] == [None, *[True] * (VISITS - 1)]
    assert own["right"] and own["bytes"] == [OBJECT] * VISITS
    check_counts(own, VISITS, early=VISITS - 1, retries=1)
    if seen["aioquic"]:
        assert seen["aioquic"]["right"]
        check_counts(seen["aioquic"], 2, early=1, retries=1)
    if seen["ngtcp2"]:
        visits = seen["ngtcp2"]
        assert all(visit["right"] for visit in visits.values()), visits
        check_counts(visits["new"], 1, early=0, retries=1)
        check_counts(visits["with a ticket"], 1, early=1, retries=1)
        # The restarted balancer does not accept tickets of its predecessor.
        check_counts(visits["after a restart"], 1, early=0, retries=1)


def check_counts(seen: dict[str, Any], visits: int, early: int, retries: int) -> None:
    """Check the counted early requests and Retry packets, and that real servers responded to all requests."""
    assert (seen["early"], seen["retries"], seen["kept"]) == (early, retries, 0), seen
    assert seen["packets"] * 1_200 > OBJECT * visits / 2

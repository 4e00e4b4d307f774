# SPDX-License-Identifier: Apache-2.0
"""A client's address changes during a download, with or without its knowledge (RFC 9000, section 9): it keeps its server,
and the download is complete.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.datacentre.addresses import COOKIE_PREFIX, QUIC_VIP4
from frontage_testbed.datacentre.settings import TARGETS, Settings
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.sandbox import Sandbox
from nat import Nat, choose_ports
from quicclients import Client
from quicrounds import BROKEN, SIZE, UNDER_WAY, Rounds, limit
from testbeds import Sandboxed, deployment, long_except, needs_root

pytestmark = [
    needs_root,
    pytest.mark.slow(seconds=45),
    pytest.mark.skipif(shutil.which("nft") is None, reason="nft is missing: apt-get install nftables"),
]

NGTCP2, AIOQUIC = Client("gtlsclient", follows=True), Client("aioquic", follows=True)
CURL, CURL4 = Client("curl", follows=False), Client("curl", follows=False, vip=QUIC_VIP4)
SOON = "--change-local-addr=500ms"
STAYS = Client("gtlsclient", follows=False, options=("--no-preferred-addr",))


@dataclass(frozen=True)
class Case:
    """A disturbance of one client."""

    name: str
    client: Client
    nat: str | None = None
    """The packets that the NAT maps: all (""), or those that an nftables expression matches."""
    from_the_first: bool = False
    """True if the NAT maps from the first packet on, and not only during the download."""


CASES = (
    *(Case("the NAT changes its mapping", client, nat="") for client in (NGTCP2, AIOQUIC, STAYS, CURL, CURL4)),
    # A mapping per destination (RFC 4787, 4.1): the client goes to the preferred address and changes its own address at
    # the same time (RFC 9000, 9.6.3).
    *(
        Case("the NAT maps by destination", client, nat=f"ip6 daddr {COOKIE_PREFIX}", from_the_first=True)
        for client in (NGTCP2, AIOQUIC)
    ),
    # The old port and all packets to it are gone. After a timeout the client sends a probe.
    Case("the NAT restarts", Client("frontage-h3-client", False, options=(f"--rebind-after={UNDER_WAY}",))),
    # The client validates the path before it uses it, with a new connection ID.
    Case("it migrates", Client("gtlsclient", follows=True, options=(SOON,))),
    Case("it migrates", Client("gtlsclient", follows=False, options=(SOON, *STAYS.options))),
)
ACCESS, BUFFER = 16_000_000, 8_000_000
"""Rate (bit/s) and queue (bytes) of a client's link, which is the bottleneck and loses nothing.

A client that only receives, and loses its server's first packet to the new address, would wait for ever (RFC 9000,
section 8).
"""
SETTINGS = Settings(servers=3, clients=len(CASES), policies=("cclb4",), bottleneck_rate=48_000_000, queue_delay=0.1)


def download(rounds: Rounds, nat: Nat, case: Case) -> dict[str, Any]:
    """Return the result of a download, with the number of packets to the NAT's other port."""
    if case.nat is None:
        return rounds.alone(case.client) | {"passed": None}
    if case.from_the_first:
        nat.start(case.nat)
        done = rounds.alone(case.client)
    else:
        done = rounds.alone(case.client, lambda: nat.start(case.nat))
    return done | {"passed": nat.stop()}


@pytest.mark.parametrize("target", long_except(("softswitch", "bmv2"), TARGETS))
def test_migrating_clients_keep_their_server(tmp_path: Path, target: str) -> None:
    settings = SETTINGS.on(target)
    parts = deployment(settings)
    cases = [case for case in CASES if case.client.missing is None]
    for case in CASES:
        if case not in cases:
            print(f"skipped {case.client.name}: {case.client.missing}")
    if not cases:
        pytest.skip("no HTTP/3 client is installed")

    def body(box: Sandbox) -> object:
        with parts.quic_testbed(settings, box) as testbed:
            testbed.offer_objects([SIZE])
            testbed.wait_until_ready()
            for host in testbed.clients.values():
                choose_ports(host)
            limit(testbed, ACCESS, BUFFER)
            rounds = Rounds(testbed, [case.client for case in cases])
            nat = Nat(testbed.network[INTERNET])
            return [download(rounds, nat, case) for case in cases]

    dones = Sandboxed(body, tmp_path).result()
    assert len(dones) == len(cases)
    for case, done in zip(cases, dones, strict=True):
        what = (case.name, done)
        assert (done["status"], done["right"]) == (0, True), what
        assert done["wrong"] == [], what
        assert len(done["servers"]) == 1, what
        assert not BROKEN & {name for name, count in done["drops"].items() if count}, what
        if case.nat is None:
            assert len(done["sources"]) == 2, (*what, "the client changed its port")
        else:
            assert len(done["sources"]) == 1 and done["passed"] > SIZE / 3000, (*what, "packets go to another port")
        address, cid = done["steering"].get("retrieved-address", 0), done["steering"].get("retrieved-cid", 0)
        assert address > cid if case.client.follows else (address == 0 and cid > 100), what

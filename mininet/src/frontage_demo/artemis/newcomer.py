"""A client of whom nothing is known, and of whom no site measures anything by itself: the switch's digest tells of it,
sites ping it, and it is in a region (docs/demand.md).
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from frontage_testbed.nodes import NodeError
from frontage_testbed.wan.addresses import PORT

from .mappingstore import Rtt
from .testbed import ArtemisTestbed

PATIENCE = 180.0
"""Seconds."""
_FIRST_FLIGHT = """
import socket, sys
datagram = bytes([0xC0, 0, 0, 0, 1, 8]) + bytes(range(8)) + bytes(1186)
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(datagram, (sys.argv[1], int(sys.argv[2])))
"""
"""1,200 bytes with the long header of an Initial (RFC 9000, 17.2.2), which no server can decrypt: so no handshake
follows from which an RTT could be taken."""


@dataclass(frozen=True)
class Newcomer:
    """What became of it."""

    seen: bool
    """A switch's digest has made a row of it."""
    rtts: tuple[Rtt, ...]
    region: int


def newcomer(testbed: ArtemisTestbed, client: str) -> Newcomer:
    """Send one first flight from a client who was never there, and wait until it is in a region, and all sites have
    pinged it. Raises NodeError if that does not come about.
    """
    before = testbed.known(client)
    if before.seen or before.region:
        raise NodeError(f"{client} is known already: {before}")
    testbed.client(client).run([sys.executable, "-c", _FIRST_FLIGHT, testbed.service_address, str(PORT)])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        now, rtts = testbed.known(client), tuple(testbed.rtts(client))
        if now.region and {rtt.site for rtt in rtts} == {site.id for site in testbed.sites}:
            return Newcomer(now.seen, rtts, now.region)
        time.sleep(0.2)
    raise NodeError(f"{client} is in no region after {PATIENCE:.0f} s: {now}, {rtts}")

# SPDX-License-Identifier: Apache-2.0
"""A new client whose round-trip time no site measures passively.

The switch's digest reports it, sites ping it, and the controllers assign it to a region (docs/demand.md).
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from frontage_testbed.nodes import NodeError
from frontage_testbed.wan.addresses import PORT

from .mappingstore import Rtt
from .testbed import ArtemisTestbed

REGION_TIMEOUT = 180.0
"""Seconds until the client has a region."""
_FIRST_FLIGHT = """
import socket, sys
datagram = bytes([0xC0, 0, 0, 0, 1, 8]) + bytes(range(8)) + bytes(1186)
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(datagram, (sys.argv[1], int(sys.argv[2])))
"""
"""1,200 bytes with the long header of an Initial (RFC 9000, 17.2.2) that no server can decrypt.

Without a handshake there is no passive RTT."""


@dataclass(frozen=True)
class Newcomer:
    """The controllers' knowledge of the client at the end."""

    seen: bool
    """True if a switch's digest reported the client."""
    rtts: tuple[Rtt, ...]
    region: int


def newcomer(testbed: ArtemisTestbed, client: str) -> Newcomer:
    """Send one first flight from an unknown client, and wait until it has a region and all sites have pinged it.

    Raises NodeError on a timeout.
    """
    before = testbed.known(client)
    if before.seen or before.region:
        raise NodeError(f"{client} is known already: {before}")
    testbed.client(client).run([sys.executable, "-c", _FIRST_FLIGHT, testbed.service_address, str(PORT)])
    deadline = time.monotonic() + REGION_TIMEOUT
    while time.monotonic() < deadline:
        now, rtts = testbed.known(client), tuple(testbed.rtts(client))
        if now.region and {rtt.site for rtt in rtts} == {site.id for site in testbed.sites}:
            return Newcomer(now.seen, rtts, now.region)
        time.sleep(0.2)
    raise NodeError(f"{client} has no region after {REGION_TIMEOUT:.0f} s: {now}, {rtts}")

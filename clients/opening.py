# SPDX-License-Identifier: Apache-2.0
"""The unencrypted part of a client's first packets (RFC 8999)."""

from __future__ import annotations

from dataclasses import dataclass

from frontage_testbed.capture import Datagram

LONG_HEADER = 0x80


@dataclass(frozen=True)
class Opening:
    """A client's first flight: its datagrams before the first response."""

    datagrams: int
    size: int
    """Bytes of the first datagram's payload."""
    destination_id: int
    """Length of the connection ID that the client chose for the server."""
    source_id: int
    """Length of the client's own connection ID."""


def opening(seen: list[Datagram]) -> Opening:
    """Return the first flight of the first connection in a capture.

    Raises ValueError if the capture does not begin with a long header from the client.
    """
    flight = []
    for datagram in seen:
        if not datagram.up:
            break
        flight.append(datagram)
    if not flight or not flight[0].head[0] & LONG_HEADER:
        raise ValueError("the capture does not begin with a long header from the client: did it start in time?")
    head = flight[0].head
    destination_id = head[5]
    return Opening(len(flight), flight[0].size, destination_id, head[6 + destination_id])

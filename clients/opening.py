"""How clients begin: what is in the clear of their first packets (RFC 8999)."""

from __future__ import annotations

from dataclasses import dataclass

from frontage_testbed.capture import Datagram

LONG_HEADER = 0x80


@dataclass(frozen=True)
class Opening:
    """How a client begins: up to the first datagram that it is sent."""

    datagrams: int
    size: int
    """Bytes of the first datagram's payload."""
    destination_id: int
    """Bytes of the connection id that the client made up for the server."""
    source_id: int
    """Bytes of the connection id that the client wants to be known by."""


def opening(seen: list[Datagram]) -> Opening:
    """Of the first connection in a capture.

    Raises ValueError if the client sent nothing, or nothing that has a long header.
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

# SPDX-License-Identifier: Apache-2.0
"""The demo's protocols and their differences: sizes on the wire, excluded policies, and terms for the report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Framing:
    """The overhead of a protocol per object downstream, without retransmissions."""

    payload: int
    """Object bytes in a full packet."""
    header: int
    """Other bytes of a packet, from the Ethernet header on."""
    per_flow: int
    """Bytes per request in addition to the body and its packets' headers."""

    def bytes_on_link(self, wire_size: int) -> int:
        """Return the bytes on the downstream link for an object of `wire_size` bytes."""
        return wire_size + math.ceil(wire_size / self.payload) * self.header + self.per_flow


@dataclass(frozen=True)
class Protocol:
    """HTTP over one transport."""

    framing: Framing
    servers: str
    """Term for the servers in the report; the next fields are terms, too."""
    http: str
    fct_begins: str
    closing: str
    transport: str
    steering: str
    """How the switch finds a packet's server."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Policies that this protocol does not support, with the reason."""


PROTOCOLS = {
    "tcp": Protocol(
        # MTU 1500 less the IPv4 and TCP headers with timestamps. Per flow: SYN-ACK, ACK, FIN, and the response header.
        framing=Framing(payload=1448, header=66, per_flow=3 * 66 + 300),
        servers="nginx servers",
        http="HTTP",
        fct_begins="its SYN",
        closing="20 % of clients close with FIN, 40 % with RST, 40 % stay connected and silent",
        transport="Linux TCP, cubic, timestamps on, on both ends",
        steering="The policy assigns only the first packet of a connection; the cookie determines the server of later ones.",
    ),
    "quic": Protocol(
        # Ethernet, IPv6, UDP, QUIC's short header and tag, a STREAM frame header. Per flow, as measured: the padded
        # datagrams of the handshake with its certificate, and the probes for the path MTU (RFC 9000, section 14.3).
        framing=Framing(payload=1411, header=95, per_flow=8000),
        servers="servers (frontage-cclb7-quic)",
        http="HTTP/3",
        fct_begins="its first Initial",
        closing="60 % of clients close the connection; 40 % stay connected and silent",
        transport="QUIC version 1 over IPv6 (noq), cubic, on both ends",
        steering="The policy assigns only the first packet of a connection. The switch finds the rest of the handshake in the "
        "handshake table (retrieved-handshake), whose entries expire. Then half of the clients move to the cookie address "
        "that their server prefers, and this address identifies the server (retrieved-address). The others stay at the "
        "virtual IP address, and the connection ID, which the server chose, identifies it (retrieved-cid).",
        left_out={"cheetah-ll": "it counts FIN and RST, which QUIC hides"},
    ),
}

LSQUIC = replace(
    PROTOCOLS["quic"],
    servers="servers (frontage-lsquic)",
    transport="QUIC version 1 over IPv6, cubic on both ends: lsquic for the servers, noq for the clients",
)
"""HTTP/3 with servers on lsquic."""

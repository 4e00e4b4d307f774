"""The protocols that the demo is played over, and what differs between them: sizes on the wire, policies, and the
report's words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Framing:
    """What a protocol adds to the bytes of an object, downstream, without retransmissions."""

    payload: int
    """Bytes of an object in a full packet."""
    header: int
    """Bytes of a packet besides, from Ethernet on."""
    per_flow: int
    """Bytes of a request besides its body and the headers of that."""

    def bytes_on_link(self, wire_size: int) -> int:
        """What fetching an object of `wire_size` bytes puts on the downstream link."""
        return wire_size + math.ceil(wire_size / self.payload) * self.header + self.per_flow


@dataclass(frozen=True)
class Protocol:
    """HTTP over one transport."""

    framing: Framing
    servers: str
    """What serves, in the report's words; so are the others."""
    http: str
    fct_begins: str
    closing: str
    transport: str
    found: str
    """How the switch finds the server of a packet."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Policies that do not go with it, and why."""


PROTOCOLS = {
    "tcp": Protocol(
        # MTU 1500 less the IPv4 and TCP headers with timestamps. Per flow: SYN-ACK, an ACK, a FIN, and the response's
        # header.
        framing=Framing(payload=1448, header=66, per_flow=3 * 66 + 300),
        servers="nginx servers",
        http="HTTP",
        fct_begins="its SYN",
        closing="20 % of clients close with FIN, 40 % with RST, 40 % stay connected and silent",
        transport="Linux TCP, cubic, timestamps on, on both ends",
        found="Only a connection's first packet is assigned by the policy; later ones go where their cookie says.",
    ),
    "quic": Protocol(
        # Ethernet, IPv6, UDP, QUIC's short header and tag, a STREAM frame's header. Per flow, as measured: the padded
        # datagrams of the handshake with its certificate, and the probes for the path's MTU (RFC 9000, section 14.3).
        framing=Framing(payload=1411, header=95, per_flow=8000),
        servers="servers (frontage-cclb7-quic)",
        http="HTTP/3",
        fct_begins="its first Initial",
        closing="60 % of clients close, QUIC's only way to end a connection; 40 % stay connected and silent",
        transport="QUIC version 1 over IPv6 (noq), cubic, on both ends",
        found="Only a connection's first packet is assigned by the policy. The rest of its handshake is found in the "
        "handshake table (retrieved-handshake), which expires. Then half of the clients go to the cookie address that "
        "their server prefers, and that address names it (retrieved-address); the others stay at the virtual IP "
        "address, where it is the connection id, which their server chose, that names it (retrieved-cid).",
        left_out={"cheetah-ll": "it counts FIN and RST, which QUIC hides"},
    ),
}

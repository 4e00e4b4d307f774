# SPDX-License-Identifier: Apache-2.0
"""sFlow version 5: datagrams of flow samples (sflow.org, sFlow Version 5) and dropped packets (sFlow Dropped Packet Notification
Structures), in XDR (RFC 4506)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from frontage.fields import IPAddress

MAX_DATAGRAM = 1400
"""Maximum size of a datagram in bytes, below the MTU of Ethernet."""

_FLOW_SAMPLE, _DISCARDED_PACKET = 1, 5
_SAMPLED_HEADER, _EXTENDED_NAT, _EXTENDED_FUNCTION = 1, 1007, 1038
_ETHERNET = 1
_FRAME_CHECK_SEQUENCE = 4
"""Bytes that the length of a frame includes, but the sample does not."""

UNKNOWN = 256
_REASONS = {
    "ethertype": 270,  # non_ip
    "ipv4-header": 275,  # ip_header_corrupted
    "ipv4-checksum": 275,
    "ipv6-header": 275,
    "martian-source": 281,  # non_routable_packet
    "multicast": 281,
    "ttl": 257,  # ttl_exceeded
    "no-route": 6,  # dst_net_unknown
    "no-next-hop": 279,  # unresolved_neigh
    "vip-no-service": 3,  # port_unreachable
    "vip-no-server": 1,  # host_unreachable
    "server-gone": 1,
    "spoofed-source": 258,  # acl
    "real-server-source": 258,
    "real-server-external": 258,
    "remote-server-source": 258,
    "aifo": 260,  # red
    "tunnel-forged": 282,  # decap_error
    "tunnel-peer": 282,
    "tunnel-header": 282,
    "tunnel-origin": 282,
    "tunnel-inner": 282,
    "tunnel-source": 282,
    "tunnel-nested": 282,
    "no-tunnel": 288,  # unknown_tunnel
    "tunnel-too-long": 262,  # pkt_too_big
    "limit-client-connections": 261,  # traffic_shaping
    "limit-connections": 261,
    "limit-client-bandwidth": 261,
    "limit-bandwidth": 261,
    "tcp-header": 289,  # unknown_l4
    "tcp-flags": 289,
    "udp-header": 289,
    "udp-checksum": 289,
}
"""The standard reasons closest to those of the P4 program. The extended function contains the exact reason."""


@dataclass(frozen=True, slots=True)
class Described:
    """A sample with the names that a collector shows."""

    packet: bytes
    length: int
    ingress_port: int
    egress_port: int
    pool: int
    function: str
    """The outcome or the exact drop reason, with the VIP and the server."""
    translated: tuple[IPAddress, IPAddress] | None = None
    """Source and destination address of the outgoing packet; None if they do not change."""
    reason: str | None = None
    """The drop reason."""


@dataclass(slots=True)
class Sequences:
    """The sequence numbers of one agent."""

    datagrams: int = 0
    flows: int = 0
    drops: int = 0
    lost: int = 0
    """Number of lost samples."""


def sample(described: Described, one_in: int, numbers: Sequences) -> bytes:
    """Return a sample, which takes the next sequence number of its kind."""
    records = [_header(described), _record(_EXTENDED_FUNCTION, _opaque(described.function.encode()))]
    if described.translated is not None:
        records.append(_record(_EXTENDED_NAT, b"".join(map(_address, described.translated))))
    port = described.ingress_port
    if described.reason is None:
        numbers.flows += 1
        fields = (numbers.flows, port, one_in, described.pool, numbers.lost, port, described.egress_port, len(records))
        return _record(_FLOW_SAMPLE, struct.pack("!8I", *fields) + b"".join(records))
    numbers.drops += 1
    reason = _REASONS.get(described.reason, UNKNOWN)
    fields = (numbers.drops, 0, port, numbers.lost, port, described.egress_port, reason, len(records))
    return _record(_DISCARDED_PACKET, struct.pack("!8I", *fields) + b"".join(records))


def datagram(agent: IPAddress, sub_agent: int, uptime_ms: int, samples: Sequence[bytes], numbers: Sequences) -> bytes:
    """Return a datagram, which takes the next sequence number."""
    numbers.datagrams += 1
    tail = struct.pack("!4I", sub_agent & 0xFFFFFFFF, numbers.datagrams & 0xFFFFFFFF, uptime_ms & 0xFFFFFFFF, len(samples))
    return struct.pack("!I", 5) + _address(agent) + tail + b"".join(samples)


def _header(described: Described) -> bytes:
    fixed = struct.pack("!3I", _ETHERNET, described.length + _FRAME_CHECK_SEQUENCE, _FRAME_CHECK_SEQUENCE)
    return _record(_SAMPLED_HEADER, fixed + _opaque(described.packet))


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack("!2I", kind, len(content)) + content


def _opaque(content: bytes) -> bytes:
    return struct.pack("!I", len(content)) + content + bytes(-len(content) % 4)


def _address(address: IPAddress) -> bytes:
    return struct.pack("!I", 1 if address.version == 4 else 2) + address.packed

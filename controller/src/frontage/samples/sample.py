# SPDX-License-Identifier: Apache-2.0
"""A sample: the header ``packet_in`` of the P4 program, and the first bytes of the packet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from finsy.proto import p4r

from frontage.p4.p4info import Schema

FLOW, DROP, POSTCARD = 1, 2, 3
"""Kinds of samples (`p4src/include/metadata.p4`)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of a packet."""

    kind: int
    reason: int
    """The drop reason; 0 if the packet was not dropped."""
    outcome: int
    direction: int
    """0 if the packet does not belong to a VIP."""
    ingress_port: int
    egress_port: int
    """0 if the packet was dropped."""
    vip_id: int
    """The id of the VIP in the P4 program."""
    sid: int
    """The SID of the server, if the packet belongs to a VIP and was not dropped."""
    length: int
    """Length of the whole packet in bytes."""
    pool: int
    """Number of packets at the ingress port so far, modulo 2^32."""
    hop_latency: int
    """Microseconds from ingress to egress; in postcards only."""
    queue_depth: int
    """Number of packets in the egress queue behind the packet; in postcards only."""
    packet: bytes
    """The first bytes of the packet."""


_NAMES = tuple(one.name for one in fields(Sample) if one.name != "packet")


def decoder(schema: Schema) -> Callable[[p4r.PacketIn], Sample] | None:
    """Return a function that decodes packet-ins, or None if the program does not send samples."""
    names = {field_id: name for field_id, name, _ in schema.packet_in}
    if not set(_NAMES) <= set(names.values()):
        return None

    def decode(message: p4r.PacketIn) -> Sample:
        found = {names[one.metadata_id]: int.from_bytes(one.value, "big") for one in message.metadata}
        return Sample(**{name: found.get(name, 0) for name in _NAMES}, packet=message.payload)

    return decode

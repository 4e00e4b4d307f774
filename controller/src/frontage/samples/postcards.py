# SPDX-License-Identifier: Apache-2.0
"""INT in XD mode: telemetry reports of the switch's own metadata (p4.org, Telemetry Report Format 2.0). Packets are not modified."""

from __future__ import annotations

import struct

from frontage.samples.sample import Sample

_VERSION = 2
_INT, _ETHERNET = 1, 3
"""The types of the report and of its inner packet."""
_INTERFACES, _HOP_LATENCY, _QUEUE = 1 << 14, 1 << 13, 1 << 12
_BITS = _INTERFACES | _HOP_LATENCY | _QUEUE
_METADATA_WORDS = 3
_FIXED_WORDS = 2
_TRACKED_FLOW = 1 << 5
"""The flag F: this node selected the packet."""


def report(sample: Sample, node_id: int, sequence: int) -> bytes:
    """Return a report with ports, hop latency (in microseconds) and queue depth (in packets), and the start of the packet."""
    inner = sample.packet + bytes(-len(sample.packet) % 4)
    words = _FIXED_WORDS + _METADATA_WORDS + len(inner) // 4
    return b"".join(
        (
            struct.pack("!2I", _VERSION << 28 | sequence & 0x3FFFFF, node_id & 0xFFFFFFFF),
            struct.pack("!4B", _INT << 4 | _ETHERNET, min(words, 0xFF), _METADATA_WORDS, _TRACKED_FLOW),
            struct.pack("!4H", _BITS, 0, 0, 0),
            struct.pack("!2H2I", sample.ingress_port, sample.egress_port, sample.hop_latency, sample.queue_depth & 0xFFFFFF),
            inner,
        )
    )

# SPDX-License-Identifier: Apache-2.0
"""The Internet checksum (RFC 1071)."""

from __future__ import annotations

import struct


def internet_checksum(data: bytes) -> int:
    """Return the checksum of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

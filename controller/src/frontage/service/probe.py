# SPDX-License-Identifier: Apache-2.0
"""TCP client segments that an operator injects to trace them through the switch."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum

from frontage.checksum import internet_checksum
from frontage.config import Config
from frontage.config.network import Role
from frontage.config.vips import Protocol, Vip
from frontage.fields import IPAddress
from frontage.p4.packet_trace import Frame

_SOURCE_MAC = bytes.fromhex("02000000f00d")
_ETHERTYPES = {4: 0x0800, 6: 0x86DD}
_TCP = 6
_HOP_LIMIT = 64
_WINDOW = 64240
_TIMESTAMPS = struct.Struct(">BBBBII")
_NOP, _TIMESTAMP_KIND, _TIMESTAMP_LENGTH = 1, 8, 10


class ProbeError(ValueError):
    """The segment cannot be built; the message says why and what to do."""


class Flags(StrEnum):
    """The flags of a segment."""

    SYN = "syn"
    ACK = "ack"
    FIN = "fin"
    RST = "rst"


_BITS = {Flags.SYN: 0x02, Flags.ACK: 0x10, Flags.FIN: 0x11, Flags.RST: 0x04}


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a client to a VIP."""

    vip: str
    client: IPAddress
    client_port: int
    flags: Flags = Flags.SYN
    tsval: int | None = None
    """The value of the timestamp option; without it, the segment has no such option."""
    tsecr: int = 0


def frame(config: Config, segment: Segment) -> Frame:
    """Return the frame of a segment, which a client's port receives. Raises ProbeError."""
    vip = _tcp_vip(config, segment)
    port = next((port for port in config.ports if port.role is Role.CLIENT), None)
    if port is None:
        raise ProbeError("missing port with the role client: add one to `ports`, so that client segments can enter")
    ethernet = port.mac.to_bytes(6, "big") + _SOURCE_MAC + struct.pack(">H", _ETHERTYPES[segment.client.version])
    tcp = _tcp_header(segment, vip)
    return Frame(port.id, ethernet + _ip_header(segment.client, vip.address, len(tcp)) + tcp)


def _tcp_vip(config: Config, segment: Segment) -> Vip:
    vip = next((vip for vip in config.vips if vip.name == segment.vip), None)
    if vip is None:
        raise ProbeError(f'unknown VIP "{segment.vip}": use one of {", ".join(vip.name for vip in config.vips[:8])}')
    if vip.protocol is not Protocol.TCP:
        raise ProbeError(f"the VIP {vip.name} is not a TCP service: choose a TCP service")
    if vip.address.version != segment.client.version:
        raise ProbeError(f"the VIP {vip.name} has an IPv{vip.address.version} address: use a client of the same version")
    return vip


def _tcp_header(segment: Segment, vip: Vip) -> bytes:
    options = b""
    if segment.tsval is not None:
        options = _TIMESTAMPS.pack(_NOP, _NOP, _TIMESTAMP_KIND, _TIMESTAMP_LENGTH, segment.tsval, segment.tsecr)
    offset = (20 + len(options)) // 4 << 4

    def header(checksum: int) -> bytes:
        acknowledged = 0 if segment.flags is Flags.SYN else 1
        fields = (segment.client_port, vip.port, 1, acknowledged, offset, _BITS[segment.flags], _WINDOW, checksum, 0)
        return struct.pack(">HHIIBBHHH", *fields) + options

    length = 20 + len(options)
    pseudo = segment.client.packed + vip.address.packed + struct.pack(">II", length, _TCP)
    return header(internet_checksum(pseudo + header(0)))


def _ip_header(client: IPAddress, vip: IPAddress, length: int) -> bytes:
    if client.version == 6:
        return struct.pack(">IHBB", 6 << 28, length, _TCP, _HOP_LIMIT) + client.packed + vip.packed

    def header(checksum: int) -> bytes:
        return struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 1, 0x4000, _HOP_LIMIT, _TCP, checksum) + client.packed + vip.packed

    return header(internet_checksum(header(0)))

# SPDX-License-Identifier: Apache-2.0
"""ICMP errors, which quote the packet that caused them."""

from dataclasses import dataclass
from ipaddress import ip_address

from scapy.all import Raw

from frontage_ptf.frame import ICMP6, IP, Frame, ones_complement_sum
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, ethernet, layer3
from frontage_ptf.site import port_of

ICMP4 = 1
ROUTER = {4: ip_address("198.51.100.250"), 6: ip_address("2001:db8:1::fa")}
"""A router on the way to the clients."""
MTU = 1280


@dataclass(frozen=True)
class Kind:
    """Type and code of an error, for each IP version."""

    name: str
    v4: tuple[int, int]
    v6: tuple[int, int]

    def of(self, version: int) -> tuple[int, int]:
        return self.v4 if version == 4 else self.v6


TOO_BIG = Kind("packet too big", (3, 4), (2, 0))
UNREACHABLE = Kind("host unreachable", (3, 1), (1, 3))
PORT_UNREACHABLE = Kind("port unreachable", (3, 3), (1, 4))
EXCEEDED = Kind("time exceeded", (11, 0), (3, 0))
PROBLEM = Kind("parameter problem", (12, 0), (4, 0))
KINDS = (TOO_BIG, UNREACHABLE, PORT_UNREACHABLE, EXCEEDED, PROBLEM)


def packet_of(frame: bytes, length: int | None = None) -> bytes:
    """Return the IP packet in a frame, or its first `length` bytes behind the IP header."""
    packet = frame[14:]
    return packet if length is None else packet[: Frame(frame).l4 - 14 + length]


def error(
    kind: Kind, source: IP, target: IP, quote: bytes, port: int = 1, ttl: int = 64, between: bytes = b"", first: int | None = None
) -> bytes:
    """Return the frame of an error with correct checksums, on `port`. `quote` is an IP packet, or its beginning."""
    version = target.version
    type_, code = kind.of(version)
    message = bytes([type_, code, 0, 0]) + (MTU if kind is TOO_BIG else 0).to_bytes(4, "big") + quote
    protocol = ICMP4 if version == 4 else ICMP6
    frame = bytes(ethernet(port) / layer3(source, target, ttl, between, protocol if first is None else first) / Raw(message))
    return with_message_checksum(Frame(frame).with_checksums())


def with_message_checksum(frame: bytes) -> bytes:
    """Return the frame of an error with a correct ICMP checksum."""
    at = Frame(frame).l4
    covered = frame[at : at + 2] + bytes(2) + frame[at + 4 :]
    if Frame(frame).ipv6:
        pseudo = Frame(frame).src.packed + Frame(frame).dst.packed + len(covered).to_bytes(4, "big") + ICMP6.to_bytes(4, "big")
        covered = pseudo + covered
    checksum = 0xFFFF ^ ones_complement_sum(covered)
    return frame[: at + 2] + checksum.to_bytes(2, "big") + frame[at + 4 :]


def forwarded(frame: bytes) -> bytes:
    """Return the frame as it leaves the switch by the port of its destination."""
    port = port_of(Frame(frame).dst)
    return Frame(frame).rewritten((PORT_MAC[port], NEIGHBOR_MAC[port]))

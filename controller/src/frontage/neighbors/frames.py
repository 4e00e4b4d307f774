# SPDX-License-Identifier: Apache-2.0
"""The frames by which the switch asks for the Ethernet address of a neighbor: ARP (RFC 826) and solicitations (RFC 4861, 4.3)."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

from frontage.checksum import internet_checksum
from frontage.fields import IPAddress, Mac

BROADCAST = Mac((1 << 48) - 1)
MIN_FRAME_BYTES = 60
"""Bytes of the shortest Ethernet frame without its check sequence (IEEE 802.3, 3.2.8)."""

_ETHERTYPE_ARP = 0x0806
_ETHERTYPE_IPV6 = 0x86DD
_ICMPV6 = 58
_SOLICITATION = 135
_SOURCE_OPTION = 1


def request(source: IPAddress, source_mac: Mac, target: IPAddress, target_mac: Mac | None) -> bytes:
    """Return the frame that asks for the Ethernet address of ``target``.

    ``source`` and ``source_mac`` are the addresses of the switch's port. The frame goes to ``target_mac``, or without it to all
    hosts. Raises ValueError if the IP versions differ.
    """
    if isinstance(source, IPv4Address) and isinstance(target, IPv4Address):
        return _arp(source, source_mac, target, target_mac)
    if isinstance(source, IPv6Address) and isinstance(target, IPv6Address):
        return _solicitation(source, source_mac, target, target_mac)
    raise ValueError(f"{source} and {target} have different IP versions")


def _arp(source: IPv4Address, source_mac: Mac, target: IPv4Address, target_mac: Mac | None) -> bytes:
    frame = _ethernet(BROADCAST if target_mac is None else target_mac, source_mac, _ETHERTYPE_ARP)
    frame += struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
    frame += _bytes(source_mac) + source.packed + bytes(6) + target.packed
    return frame.ljust(MIN_FRAME_BYTES, b"\0")


def _solicitation(source: IPv6Address, source_mac: Mac, target: IPv6Address, target_mac: Mac | None) -> bytes:
    destination = target
    if target_mac is None:
        # The solicited-node multicast address (RFC 4291, 2.7.1), and its Ethernet address (RFC 2464, 7).
        destination = IPv6Address(int(IPv6Address("ff02::1:ff00:0")) | int(target) & 0xFFFFFF)
        target_mac = Mac(0x3333 << 32 | int(destination) & 0xFFFFFFFF)
    message = struct.pack("!BBHI", _SOLICITATION, 0, 0, 0) + target.packed
    message += struct.pack("!BB", _SOURCE_OPTION, 1) + _bytes(source_mac)
    pseudo_header = source.packed + destination.packed + struct.pack("!II", len(message), _ICMPV6)
    checksum = internet_checksum(pseudo_header + message)
    message = message[:2] + struct.pack("!H", checksum) + message[4:]
    # Hop limit 255 proves that the packet comes from this link (RFC 4861, 7.1.1).
    header = struct.pack("!IHBB", 6 << 28, len(message), _ICMPV6, 255) + source.packed + destination.packed
    return _ethernet(target_mac, source_mac, _ETHERTYPE_IPV6) + header + message


def _ethernet(destination: Mac, source: Mac, ether_type: int) -> bytes:
    return _bytes(destination) + _bytes(source) + struct.pack("!H", ether_type)


def _bytes(mac: Mac) -> bytes:
    return mac.to_bytes(6, "big")

# SPDX-License-Identifier: Apache-2.0
"""One end of a GRE or Geneve tunnel in user space, for kernels without these devices.

It moves packets between a TUN interface and a socket of the kernel, which adds the outer IP header and must not fragment.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import selectors
import socket
import struct
from collections.abc import Callable
from ipaddress import ip_address

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER = 10, 23
PMTUDISC_DO = 2
"""Packets that are too long are errors."""
UDP_NO_CHECK6_RX = 102
"""Accept datagrams without a checksum over IPv6 (RFC 6935)."""
GENEVE_PORT = 6081
BRIDGED = 0x6558
GRE_HAS_KEY = 0x2000
ETHER_TYPES = {4: 0x0800, 6: 0x86DD}
MACS = bytes.fromhex("020000000001020000000000")
"""Destination and source of inner frames."""


class UnknownTunnelError(ValueError):
    """A packet of another tunnel."""


def in_gre(packet: bytes, key: int) -> bytes:
    """Return an IP packet in GRE with a key (RFC 2784, RFC 2890)."""
    return struct.pack(">HHI", GRE_HAS_KEY, ETHER_TYPES[packet[0] >> 4], key) + packet


def out_of_gre(data: bytes, key: int) -> bytes:
    """Return the packet in GRE with this key. Raises UnknownTunnelError."""
    flags, protocol, found = struct.unpack_from(">HHI", data)
    if flags != GRE_HAS_KEY or found != key or protocol not in ETHER_TYPES.values():
        raise UnknownTunnelError(data[:8].hex())
    return data[8:]


def in_geneve(packet: bytes, vni: int) -> bytes:
    """Return an IP packet in an Ethernet frame in Geneve (RFC 8926)."""
    return struct.pack(">BBHI", 0, 0, BRIDGED, vni << 8) + MACS + struct.pack(">H", ETHER_TYPES[packet[0] >> 4]) + packet


def out_of_geneve(data: bytes, vni: int) -> bytes:
    """Return the packet in Geneve with this VNI, without its options. Raises UnknownTunnelError."""
    first, flags, protocol, found = struct.unpack_from(">BBHI", data)
    if first >> 6 != 0 or flags & 0xC0 or protocol != BRIDGED or found >> 8 != vni:
        raise UnknownTunnelError(data[:8].hex())
    return data[8 + 4 * (first & 0x3F) + 14 :]


KINDS: dict[str, tuple[Callable[[bytes, int], bytes], Callable[[bytes, int], bytes]]] = {
    "gre": (in_gre, out_of_gre),
    "geneve": (in_geneve, out_of_geneve),
}


def open_tun(name: str) -> int:
    """Return a non-blocking descriptor of an existing TUN interface."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def open_socket(kind: str, local: str) -> socket.socket:
    """Return a non-blocking socket that receives the tunnel's packets at `local`."""
    version = ip_address(local).version
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    if kind == "gre":
        link = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_GRE)
        link.bind((local, 0))
    else:
        link = socket.socket(family, socket.SOCK_DGRAM)
        link.bind((local, GENEVE_PORT))
        if version == 6:
            link.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
    if version == 4:
        link.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO)
    else:
        link.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_DO)
    link.setblocking(False)
    return link


def run(kind: str, interface: str, local: str, remote: str, tunnel_id: int) -> None:
    """Move packets until the process ends."""
    wrap, unwrap = KINDS[kind]
    tun, link = open_tun(interface), open_socket(kind, local)
    has_ip_header = kind == "gre" and ":" not in local  # raw sockets of IPv4 receive it
    to = (remote, 0 if kind == "gre" else GENEVE_PORT)

    def send() -> None:
        link.sendto(wrap(os.read(tun, 65535), tunnel_id), to)

    def receive() -> None:
        data, source = link.recvfrom(65535)
        if source[0] == remote:
            os.write(tun, unwrap(data[4 * (data[0] & 15) :] if has_ip_header else data, tunnel_id))

    with selectors.DefaultSelector() as selector:
        selector.register(tun, selectors.EVENT_READ, send)
        selector.register(link, selectors.EVENT_READ, receive)
        while True:
            for key, _ in selector.select():
                key.data()


def main() -> None:
    """Run one end with the command line's parameters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    for name in ("interface", "local", "remote"):
        parser.add_argument(name)
    parser.add_argument("tunnel_id", type=int)
    arguments = parser.parse_args()
    run(**vars(arguments))


if __name__ == "__main__":
    main()

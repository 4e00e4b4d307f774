# SPDX-License-Identifier: Apache-2.0
"""Packets of a site's clients and servers: complete and valid, so they reach code that random fields seldom reach."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from random import Random

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet as Layers
from scapy.packet import Raw

from frontage.config import Config
from frontage.config.network import Port, Role
from frontage.config.vips import Protocol, Server, Vip
from frontage.cookie import CID_NONCE_MAX, Ip6Cookie, plain_cid
from target import Packet

Address = IPv4Address | IPv6Address

CLIENTS: dict[int, tuple[Address, ...]] = {
    4: tuple(IPv4Address(f"198.51.100.{host}") for host in range(7, 11)),
    6: tuple(IPv6Address(f"2001:db8:9::{host}") for host in range(7, 11)),
}
PORTS = range(40000, 40008)
"""Few clients and ports, so that connections have several packets."""
INITIAL = 1200
"""Minimum size in bytes of an Initial's datagram (RFC 9000, section 14.1)."""
FLAGS = ("S", "S", "A", "PA", "FA", "R")


class Dialogue:
    """Packets between clients of a site and its services."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._port = {role: next(port for port in config.ports if port.role is role) for role in (Role.CLIENT, Role.SERVER)}
        self._members = [(vip, server) for vip in config.vips for server in config.servers if server.vip == vip.name]

    def packet(self, random: Random) -> Packet:
        """Return a random packet with its ingress port."""
        vip, server = random.choice(self._members)
        client, up = random.choice(CLIENTS[vip.address.version]), random.random() < 0.5
        match vip.protocol, up:
            case Protocol.TCP, True:
                said = _ip(client, vip.address) / _tcp(random, random.choice(PORTS), vip.port, ck=0)
            case Protocol.TCP, False:
                said = _ip(server.address, client) / _tcp(random, server.port, random.choice(PORTS), ck=random.getrandbits(1))
            case _, True:
                said = _ip(client, self._to(random, vip, server)) / _datagram(
                    random, random.choice(PORTS), vip.port, self._head(random, server)
                )
            case _:
                said = _ip(self._source(random, vip, server), client)
                said /= _datagram(random, server.port, random.choice(PORTS), b"\x40" + random.randbytes(8))
        at = self._port[Role.CLIENT if up else Role.SERVER]
        return at.id, bytes(_ethernet(at) / said)

    def _to(self, random: Random, vip: Vip, server: Server) -> Address:
        """Return the VIP or, if the VIP has cookie addresses, sometimes one of these."""
        if vip.cookie_prefix is None or random.random() < 0.6:
            return vip.address
        return vip.cookie_prefix[random.choice(self._config.cookie_keys).seal_ip6(Ip6Cookie(server.sid))]

    def _source(self, random: Random, vip: Vip, server: Server) -> Address:
        """Return the DIP or, if the VIP has cookies, usually an address in the server's /64."""
        if vip.cookie_prefix is None or random.random() < 0.2:
            return server.address
        rpt, n_af, n_ff = (random.choice((0, 1, 5, random.getrandbits(8))) for _ in range(3))
        dynamic = Ip6Cookie(server.sid, rpt, n_af, n_ff, expects_static=random.random() < 0.5, dynamic=True)
        cookie = dynamic if random.random() < 0.8 else Ip6Cookie(server.sid)
        return IPv6Network((server.address, 64), strict=False)[random.choice(self._config.cookie_keys).seal_ip6(cookie)]

    def _head(self, random: Random, server: Server) -> bytes:
        """Return a QUIC packet with a long or short header (RFC 8999, section 5) and a random connection id."""
        ours = random.choice(self._config.cookie_keys).seal_cid(server.sid, random.randint(1, CID_NONCE_MAX), random.randbytes(3))
        cid = random.choice(
            (ours, ours, plain_cid(server.sid, random.randbytes(9)), random.randbytes(8), random.randbytes(20), b"")
        )
        if random.random() < 0.5:
            return b"\x40" + cid
        version = random.choice((1, 1, 0x6B3343CF, random.getrandbits(32)))
        return b"\xc0" + version.to_bytes(4, "big") + bytes([len(cid)]) + cid + b"\x04frnt"


def _ethernet(port: Port) -> Layers:
    mac = port.mac.to_bytes(6, "big").hex(":")
    return Ether(src="02:00:00:00:09:01", dst=mac)


def _ip(source: Address, to: Address) -> Layers:
    layer = IP if source.version == 4 else IPv6
    return layer(src=str(source), dst=str(to))


def _datagram(random: Random, sport: int, dport: int, head: bytes) -> Layers:
    size = random.choice((30, 60, INITIAL - 1, INITIAL, INITIAL))
    return UDP(sport=sport, dport=dport) / Raw(head.ljust(size, b"\x5a"))


def _tcp(random: Random, sport: int, dport: int, ck: int) -> Layers:
    """Return TCP options, usually with a time stamp at Linux's position."""
    flags, stamped = random.choice(FLAGS), random.random() < 0.8
    stamps = (random.getrandbits(32), 0 if flags == "S" else random.getrandbits(32))
    options: list[tuple[str, object]] = [("NOP", None), ("NOP", None), ("Timestamp", stamps)] if stamped else []
    if flags == "S":
        options = [("MSS", 1460), ("SAckOK", b""), *options[2:], ("NOP", None), ("WScale", 7)]
    head = TCP(sport=sport, dport=dport, flags=flags, reserved=ck << 2, seq=random.getrandbits(32), ack=random.getrandbits(32))
    head.options = options
    return head / Raw(b"frontage"[: random.choice((0, 8))])

# SPDX-License-Identifier: Apache-2.0
"""QUIC packets: the version-independent part (RFC 8999), and the addresses and connection ids of our servers."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from scapy.all import UDP as Udp
from scapy.all import Packet, Raw

from frontage_ptf import frame as protocols
from frontage_ptf.balancer import BalancerTest
from frontage_ptf.cookie import Key
from frontage_ptf.frame import Frame
from frontage_ptf.names import CLAIMS, DROPS
from frontage_ptf.packets import Endpoint, Flow, ethernet, layer3, random_client
from frontage_ptf.site import CCLB4, Server, Vip, tree_depth_for
from frontage_ptf.switch import KEY

QUIC4 = Endpoint(ip_address("192.0.2.7"), 443)
QUIC6 = Endpoint(ip_address("2001:db8:f::7"), 443)
PREFIX = int(ip_address("2001:db8:c00c:1e::")) >> 64
INITIAL = 1200
VERSION = 1
DIPS = {4: ip_address("10.1.0.16"), 6: ip_address("fd12:3456:a::10")}


def long(dcid: bytes, scid: bytes = b"client", size: int = INITIAL, version: int = VERSION, first: int = 0xC0) -> bytes:
    """Return a packet with a long header (RFC 8999, 5.1): a datagram of `size` bytes, filled with a pattern."""
    head = bytes([first]) + version.to_bytes(4, "big") + bytes([len(dcid)]) + dcid + bytes([len(scid)]) + scid
    return filled(head, size)


def short(dcid: bytes, size: int = 60, first: int = 0x40) -> bytes:
    """Return a packet with a short header (RFC 8999, 5.2)."""
    return filled(bytes([first]) + dcid, size)


def filled(head: bytes, size: int) -> bytes:
    return head + bytes(i * 37 & 0xFF for i in range(size - len(head)))


@dataclass(frozen=True)
class Conversation(Flow):
    """One client's QUIC connection with a VIP."""

    def datagram(self, payload: bytes, to: Endpoint | None = None, port: int = 1, between: bytes = b"", first: int = 17) -> bytes:
        """Return a datagram from the client, to the VIP or to the cookie address `to`."""
        to = to or self.vip
        head = layer3(self.client.address, to.address, between=between, first=first)
        return udp(ethernet(port) / head, self.client.port, to.port, payload)

    def response(self, source: Endpoint, payload: bytes = b"", port: int = 3) -> bytes:
        """Return a datagram from a server, from any address of its /64."""
        packet = ethernet(port) / layer3(source.address, self.client.address, first=17)
        return udp(packet, source.port, self.client.port, payload or short(b"\x11" * 8))


def udp(lower: Packet, sport: int, dport: int, payload: bytes) -> bytes:
    packet = lower / Udp(sport=sport, dport=dport, len=8 + len(payload), chksum=0xFFFF) / Raw(payload)
    return Frame(bytes(packet)).with_checksums()


def own_address(server: Server, interface_id: int) -> Endpoint:
    """Return an address in the server's /64."""
    return Endpoint(IPv6Address(int(server.dip.address) >> 64 << 64 | interface_id), server.dip.port)


def cookie_address(vip: Vip, interface_id: int) -> Endpoint:
    assert vip.prefix is not None
    return Endpoint(IPv6Address(vip.prefix << 64 | interface_id), vip.at.port)


class QuicTest(BalancerTest):
    """QUIC services over IPv4 and IPv6, whose servers are found by address, connection id and handshake."""

    control = "unseal"

    def _begin(self) -> None:
        super()._begin()
        self.used_indices: set[int] = set()
        self.install_keys(KEY)

    def install_keys(self, *keys: Key) -> None:
        """Install the tables that unseal QUIC cookies, one key per epoch."""
        for key in keys:
            self.site.install_quic_key(key)

    def make_quic(
        self,
        count: int,
        id: int = 7,
        at: Endpoint = QUIC6,
        policy: int = CCLB4,
        base: int = 16,
        first_sid: int = 700,
        prefix: int | None = PREFIX,
        keys: Iterable[Key] = (KEY,),
    ) -> Vip:
        """Install a VIP of `count` servers. Over IPv6 each has its own /64, and with a prefix a cookie address."""
        version = at.address.version
        step = 1 << 64 if version == 6 else 1
        dips = [Endpoint(DIPS[version] + step * (first_sid % 4096 + i), 8443) for i in range(count)]
        servers = [Server(first_sid + i, dip, slot=base + i) for i, dip in enumerate(dips)]
        vip = Vip(id, at, servers, policy=policy, tree_base=base, tree_depth=tree_depth_for(count), protocol=protocols.UDP)
        vip.prefix = prefix if version == 6 else None
        self.site.add_vip(vip)
        if vip.prefix is not None:
            for key in keys:
                self.site.set_static_cookies(key, servers)
        return vip

    def new_conversation(self, vip: Vip) -> Conversation:
        """Return a conversation of a random client with an unused index in the handshake table."""
        while True:
            conversation = Conversation(random_client(self.rng, vip.at.address.version == 6), vip.at)
            if conversation.table_index not in self.used_indices:
                self.used_indices.add(conversation.table_index)
                return conversation

    def foreign_cid(self, length: int = 8) -> bytes:
        """Return a client's own connection id, which differs from all forms of our servers."""
        return bytes([0xFF]) + self.rng.randbytes(length - 1) if length else b""

    def load(self, vip: Vip, server: Server, n_af: int, n_ff: int, key: Key = KEY) -> Conversation:
        """Send a packet of the server with its loads, as codes of the IPv6 carrier, to a client at the VIP."""
        source = own_address(server, key.dynamic6(server.sid, self.rng.getrandbits(8), n_af, n_ff))
        conversation = self.new_conversation(vip)
        self.comes_from(vip.at, conversation.response(source), "INSIGHT")
        return conversation

    def claims(self) -> dict[str, int]:
        """Return the claims of the handshake table."""
        counts = self.client.counter("FrontageIngress.cclb4.handshake.claims.claims")
        return {CLAIMS[kind]: count for kind, count in counts.items()}

    def all_drops(self) -> dict[str, int]:
        return {DROPS[reason]: count for reason, count in self.dropped_so_far().items()}

    def colliding_pair(self, vip: Vip) -> tuple[Conversation, Conversation]:
        """Return two conversations with the same index in the handshake table."""
        seen: dict[int, Conversation] = {}
        while True:
            one = Conversation(random_client(self.rng, vip.at.address.version == 6), vip.at)
            other = seen.setdefault(one.table_index, one)
            if other != one and other.hash != one.hash:
                return other, one


__all__ = ["INITIAL", "PREFIX", "QUIC4", "QUIC6", "Conversation", "QuicTest", "cookie_address", "long", "own_address", "short"]

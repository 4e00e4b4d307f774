# SPDX-License-Identifier: Apache-2.0
"""Malformed QUIC packets from clients and servers: dropped for a named reason, wherever they are truncated."""

import struct

from frontage_ptf.frame import Frame, ipv4_valid, overwritten
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import QUIC4, Conversation, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import HASH, Vip
from frontage_ptf.switch import KEY


def resized(frame: bytes, udp_length: int) -> bytes:
    """Return the frame with another UDP length, and the matching checksum if that much of the datagram exists."""
    at = Frame(frame).l4 + 4
    return overwritten(frame, at, *udp_length.to_bytes(2, "big"))


def cut(frame: bytes, payload: int) -> bytes:
    """Return the datagram with only the first bytes of its payload, and all lengths correct."""
    l4 = Frame(frame).l4
    frame = resized(frame[: l4 + 8 + payload], 8 + payload)
    if frame[12:14] == b"\x86\xdd":
        frame = frame[:18] + struct.pack("!H", l4 - 54 + 8 + payload) + frame[20:]
    else:
        frame = ipv4_valid(frame[:16] + struct.pack("!H", l4 - 14 + 8 + payload) + frame[18:])
    return Frame(frame).with_checksums()


def headless(frame: bytes, size: int) -> bytes:
    """Return only the first bytes of the UDP header, with the IP header's lengths correct."""
    l4 = Frame(frame).l4
    if frame[12:14] == b"\x86\xdd":
        return frame[:18] + struct.pack("!H", size) + frame[20 : l4 + size]
    return ipv4_valid(frame[:16] + struct.pack("!H", l4 - 14 + size) + frame[18 : l4 + size])


class MalformedTest(QuicTest):
    def vips(self) -> list[Vip]:
        return [self.make_quic(2, policy=HASH), self.make_quic(2, 8, QUIC4, HASH, base=32, first_sid=800)]


class CutHeaders(MalformedTest):
    """Cut at every byte of a long and of a short header: below the version-independent part the drop has its own
    reason."""

    def runTest(self) -> None:
        for vip in self.vips():
            conversation = self.new_conversation(vip)
            for dcid in (b"", self.foreign_cid(8), KEY.cid(vip.servers[0].sid, 3), self.foreign_cid(20)):
                frame = conversation.datagram(long(dcid, size=100))
                least = 1 + 4 + 1 + len(dcid) + 1
                for size in range(least):
                    self.drops(1, cut(frame, size), "QUIC_HEADER")
                if len(dcid) != 12:
                    self.drops(1, cut(frame, least), "QUIC_SMALL")
                else:
                    self.goes_to(vip.servers[0], cut(frame, least), "RETRIEVED_CID")
            frame = conversation.datagram(short(self.foreign_cid(20)))
            for size in range(14):
                self.drops(1, cut(frame, size), "QUIC_HEADER" if size < 10 else "QUIC_NO_CONNECTION")


class CutBeforeQuic(MalformedTest):
    """Cut within the UDP header; or anywhere, if the IP header claims more."""

    def runTest(self) -> None:
        for vip in self.vips():
            conversation = self.new_conversation(vip)
            for payload in (long(self.foreign_cid(), size=100), short(self.foreign_cid())):
                frame = conversation.datagram(payload)
                l4 = Frame(frame).l4
                for size in range(8):
                    self.drops(1, headless(frame, size), "TRUNCATED")
                name = "IPV6_HEADER" if vip.at.address.version == 6 else "IPV4_HEADER"
                for size in range(l4, l4 + 40):
                    self.drops(1, frame[:size], name)


class Ipv4OptionsDoNotCountAsPayload(MalformedTest):
    """IPv4 options do not count as part of the datagram."""

    def runTest(self) -> None:
        vip = self.make_quic(2, 8, QUIC4, HASH)
        server = vip.servers[1]
        payload = short(KEY.cid(server.sid, 3))
        for words in (1, 4, 10):
            frame = self.new_conversation(vip).datagram(payload, between=b"\1" * 4 * words)
            self.goes_to(server, frame, "RETRIEVED_CID")
            self.drops(1, resized(frame, 8 + len(payload) + 1), "UDP_HEADER")


class PaddingDoesNotCountAsPayload(MalformedTest):
    """Ethernet padding does not count as part of the datagram."""

    def runTest(self) -> None:
        vip = self.make_quic(2, 8, QUIC4, HASH)
        cid = KEY.cid(vip.servers[1].sid, 3)
        for size in range(10):
            self.drops(1, cut(self.new_conversation(vip).datagram(short(cid)), size) + cid * 4, "QUIC_HEADER")
        for size in range(19):
            self.drops(1, cut(self.new_conversation(vip).datagram(long(cid, size=100)), size) + cid * 4, "QUIC_HEADER")


class IdsLongerThanTheDatagram(MalformedTest):
    """Connection ids of any claimed length: those that do not fit drop for a named reason, the others reach a
    server."""

    def runTest(self) -> None:
        for vip in self.vips():
            conversation = self.new_conversation(vip)
            for length in range(256):
                payload = bytes([0xC0]) + bytes(4) + bytes([length]) + b"\xff" * 94
                name = "QUIC_HEADER" if 7 + length > len(payload) else "QUIC_SMALL"
                self.drops(1, conversation.datagram(payload), name)


class InvalidUdpLengthsDrop(MalformedTest):
    """Below the header's own length, or beyond what the IP header claims."""

    def runTest(self) -> None:
        for vip in self.vips():
            server = vip.servers[0]
            frame = self.new_conversation(vip).datagram(short(KEY.cid(server.sid, 3), size=60))
            for length in (0, 1, 7, 69, 70, 1000, 0xFFFF):
                self.drops(1, resized(frame, length), "UDP_HEADER")
            shorter = Frame(resized(frame, 60)).with_checksums()  # the rest is padding
            self.goes_to(server, shorter, "RETRIEVED_CID")
            answer = self.new_conversation(vip).response(server.dip)
            for length in (0, 7, 69, 0xFFFF):
                self.drops(3, resized(answer, length), "UDP_HEADER")


class ExtensionHeadersDoNotCountAsPayload(MalformedTest):
    """As many extension headers as the parser follows may precede the datagram, and do not count as part of it."""

    def runTest(self) -> None:
        vip = self.make_quic(2, policy=HASH)
        server = vip.servers[0]
        payload = short(KEY.cid(server.sid, 3))
        sizes = (1, 3, 8) if self.client.program.follows_long_extensions else (1,)
        for units in sizes:
            between = bytes([17, units - 1]) + bytes(8 * units - 2)
            frame = self.new_conversation(vip).datagram(payload, between=between, first=60)
            self.goes_to(server, frame, "RETRIEVED_CID")
            self.drops(1, resized(frame, 8 + len(payload) + 1), "UDP_HEADER")
        between = bytes([17, sizes[-1]]) + bytes(8 * (sizes[-1] + 1) - 2)
        self.drops(1, self.new_conversation(vip).datagram(payload, between=between, first=60), "VIP_EXTENSION")


class MissingChecksumOverIpv6Drops(MalformedTest):
    """Over IPv6 every datagram has a checksum (RFC 8200, 8.1), in both directions."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        server = vip.servers[0]
        conversation = self.new_conversation(vip)
        static = cookie_address(vip, KEY.static6(server.sid))
        for frame in (
            conversation.datagram(long(self.foreign_cid())),
            conversation.datagram(short(KEY.cid(server.sid, 3))),
            conversation.datagram(short(b""), static),
        ):
            self.drops(1, self.zeroed(frame), "UDP_CHECKSUM")
        for source in (server.dip, own_address(server, KEY.dynamic6(server.sid))):
            self.drops(3, self.zeroed(conversation.response(source)), "UDP_CHECKSUM")

    def zeroed(self, frame: bytes) -> bytes:
        at = Frame(frame).l4 + 6
        return overwritten(frame, at, 0, 0)


class FragmentsDrop(MalformedTest):
    """QUIC datagrams are never fragmented (RFC 9000, 14): only the first fragment would have ports."""

    def runTest(self) -> None:
        vip6, vip4 = self.vips()
        frame = bytearray(self.new_conversation(vip4).datagram(long(self.foreign_cid())))
        for flags in (0x2000, 0x0010, 0x2010):
            struct.pack_into("!H", frame, 20, flags)
            self.drops(1, ipv4_valid(bytes(frame)), "VIP_FRAGMENT")
        for offset in (1, 0x10):
            between = bytes([17, 0]) + offset.to_bytes(2, "big") + bytes(4)
            for to in (None, cookie_address(vip6, KEY.static6(vip6.servers[0].sid))):
                self.drops(1, self.new_conversation(vip6).datagram(short(b""), to, between=between, first=44), "VIP_FRAGMENT")


class OtherPacketsToVipDrop(MalformedTest):
    """Packets to a VIP's address or a cookie prefix that are not QUIC to a served port."""

    def runTest(self) -> None:
        vip6, vip4 = self.vips()
        for vip in (vip6, vip4):
            at = Endpoint(vip.at.address, vip.at.port + 1)
            self.drops(1, Conversation(self.new_conversation(vip).client, at).datagram(long(self.foreign_cid())), "VIP_NO_SERVICE")
            self.drops(1, Conversation(self.new_conversation(vip).client, at).datagram(b""), "VIP_NO_SERVICE")
            self.drops(1, self.new_conversation(vip).up("S"), "VIP_NO_SERVICE")
        server = vip6.servers[0]
        to = cookie_address(vip6, KEY.static6(server.sid))
        self.drops(1, self.new_conversation(vip6).datagram(short(b""), Endpoint(to.address, 53)), "VIP_NO_SERVICE")
        self.drops(1, Conversation(self.new_conversation(vip6).client, to).up("A"), "VIP_NO_SERVICE")


class OtherUdpIsRouted(MalformedTest):
    """UDP without a VIP is routed, whatever its payload, with or without a checksum."""

    def runTest(self) -> None:
        vip6, vip4 = self.vips()
        for vip, other in ((vip6, "2001:db8:2::9"), (vip4, "203.0.113.9")):
            client = self.new_conversation(vip).client
            elsewhere = Endpoint(type(client.address)(other), 443)
            for payload in (b"", b"\x80", b"\xc0\0\0\0\1", short(b"", size=3), long(self.foreign_cid())):
                frame = Conversation(client, elsewhere).datagram(payload)
                self.passes(1, frame, 2, Frame(frame).rewritten(("02:00:00:00:00:02", "02:00:00:00:01:02")))


class RandomDatagrams(MalformedTest):
    """Thousands of random datagrams: each reaches a server of its VIP unchanged, or is dropped for a named reason."""

    def runTest(self) -> None:
        vips = self.vips()
        for n in range(1500):
            vip = vips[n % 2]
            payload = self.rng.randbytes(self.rng.choice((5, 9, 10, 20, 60, 1199, 1200, 1300)))
            self.send(1, self.new_conversation(vip).datagram(payload))
            if n % 25 == 24:
                self.settle()

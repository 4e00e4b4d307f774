"""What no correct QUIC client or server sends: dropped for a name, wherever it breaks off."""

import struct

from frontage_ptf.frame import Frame, ipv4_valid, overwritten
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import QUIC4, Conversation, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import HASH, Vip
from frontage_ptf.switch import KEY


def resized(frame: bytes, udp_length: int) -> bytes:
    """With another UDP length, and the checksum that belongs to it as far as there is one."""
    at = Frame(frame).l4 + 4
    return overwritten(frame, at, *udp_length.to_bytes(2, "big"))


def cut(frame: bytes, payload: int) -> bytes:
    """The datagram with only the first bytes of its payload, every length right."""
    l4 = Frame(frame).l4
    frame = resized(frame[: l4 + 8 + payload], 8 + payload)
    if frame[12:14] == b"\x86\xdd":
        frame = frame[:18] + struct.pack("!H", l4 - 54 + 8 + payload) + frame[20:]
    else:
        frame = ipv4_valid(frame[:16] + struct.pack("!H", l4 - 14 + 8 + payload) + frame[18:])
    return Frame(frame).with_checksums()


def headless(frame: bytes, size: int) -> bytes:
    """Only the first bytes of the UDP header, with the IP header's lengths right."""
    l4 = Frame(frame).l4
    if frame[12:14] == b"\x86\xdd":
        return frame[:18] + struct.pack("!H", size) + frame[20 : l4 + size]
    return ipv4_valid(frame[:16] + struct.pack("!H", l4 - 14 + size) + frame[18 : l4 + size])


class MalformedTest(QuicTest):
    def vips(self) -> list[Vip]:
        return [self.make_quic(2, policy=HASH), self.make_quic(2, 8, QUIC4, HASH, base=32, first_sid=800)]


class CutHeaders(MalformedTest):
    """At every byte of a long header and of a short one: below what QUIC's invariants hold, by that name."""

    def runTest(self) -> None:
        for vip in self.vips():
            conversation = self.talk(vip)
            for dcid in (b"", self.some_cid(8), KEY.cid(vip.servers[0].sid, 3), self.some_cid(20)):
                frame = conversation.datagram(long(dcid, size=100))
                least = 1 + 4 + 1 + len(dcid) + 1
                for size in range(least):
                    self.drops(1, cut(frame, size), "QUIC_HEADER")
                if len(dcid) != 12:
                    self.drops(1, cut(frame, least), "QUIC_SMALL")
                else:
                    self.goes_to(vip.servers[0], cut(frame, least), "RETRIEVED_CID")
            frame = conversation.datagram(short(self.some_cid(20)))
            for size in range(14):
                self.drops(1, cut(frame, size), "QUIC_HEADER" if size < 10 else "QUIC_NO_CONNECTION")


class CutBeforeQuic(MalformedTest):
    """Within UDP's own header; and anywhere, when the IP header says that there is more."""

    def runTest(self) -> None:
        for vip in self.vips():
            conversation = self.talk(vip)
            for payload in (long(self.some_cid(), size=100), short(self.some_cid())):
                frame = conversation.datagram(payload)
                l4 = Frame(frame).l4
                for size in range(8):
                    self.drops(1, headless(frame, size), "TRUNCATED")
                name = "IPV6_HEADER" if vip.at.address.version == 6 else "IPV4_HEADER"
                for size in range(l4, l4 + 40):
                    self.drops(1, frame[:size], name)


class BehindIpv4Options(MalformedTest):
    """They are no part of the datagram."""

    def runTest(self) -> None:
        vip = self.make_quic(2, 8, QUIC4, HASH)
        server = vip.servers[1]
        payload = short(KEY.cid(server.sid, 3))
        for words in (1, 4, 10):
            frame = self.talk(vip).datagram(payload, between=b"\1" * 4 * words)
            self.goes_to(server, frame, "RETRIEVED_CID")
            self.drops(1, resized(frame, 8 + len(payload) + 1), "UDP_HEADER")


class CutInAPaddedFrame(MalformedTest):
    """Ethernet's padding is no part of the datagram."""

    def runTest(self) -> None:
        vip = self.make_quic(2, 8, QUIC4, HASH)
        cid = KEY.cid(vip.servers[1].sid, 3)
        for size in range(10):
            self.drops(1, cut(self.talk(vip).datagram(short(cid)), size) + cid * 4, "QUIC_HEADER")
        for size in range(19):
            self.drops(1, cut(self.talk(vip).datagram(long(cid, size=100)), size) + cid * 4, "QUIC_HEADER")


class IdsLongerThanTheDatagram(MalformedTest):
    """Of any claimed length: what does not fit has a name, what fits is somebody's."""

    def runTest(self) -> None:
        for vip in self.vips():
            conversation = self.talk(vip)
            for length in range(256):
                payload = bytes([0xC0]) + bytes(4) + bytes([length]) + b"\xff" * 94
                name = "QUIC_HEADER" if 7 + length > len(payload) else "QUIC_SMALL"
                self.drops(1, conversation.datagram(payload), name)


class UdpLengths(MalformedTest):
    """Below its own header, or beyond what the IP header says."""

    def runTest(self) -> None:
        for vip in self.vips():
            server = vip.servers[0]
            frame = self.talk(vip).datagram(short(KEY.cid(server.sid, 3), size=60))
            for length in (0, 1, 7, 69, 70, 1000, 0xFFFF):
                self.drops(1, resized(frame, length), "UDP_HEADER")
            shorter = Frame(resized(frame, 60)).with_checksums()  # the rest belongs to nobody
            self.goes_to(server, shorter, "RETRIEVED_CID")
            answer = self.talk(vip).answer(server.dip)
            for length in (0, 7, 69, 0xFFFF):
                self.drops(3, resized(answer, length), "UDP_HEADER")


class BehindExtensionHeaders(MalformedTest):
    """They are no part of the datagram; as many as the parser follows may be before it."""

    def runTest(self) -> None:
        vip = self.make_quic(2, policy=HASH)
        server = vip.servers[0]
        payload = short(KEY.cid(server.sid, 3))
        for units in (1, 3, 8):
            between = bytes([17, units - 1]) + bytes(8 * units - 2)
            frame = self.talk(vip).datagram(payload, between=between, first=60)
            self.goes_to(server, frame, "RETRIEVED_CID")
            self.drops(1, resized(frame, 8 + len(payload) + 1), "UDP_HEADER")
        between = bytes([17, 8]) + bytes(8 * 9 - 2)
        self.drops(1, self.talk(vip).datagram(payload, between=between, first=60), "VIP_EXTENSION")


class NoChecksum(MalformedTest):
    """Over IPv6 every datagram has one (RFC 8200, 8.1), in both directions."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        server = vip.servers[0]
        conversation = self.talk(vip)
        static = cookie_address(vip, KEY.static6(server.sid))
        for frame in (
            conversation.datagram(long(self.some_cid())),
            conversation.datagram(short(KEY.cid(server.sid, 3))),
            conversation.datagram(short(b""), static),
        ):
            self.drops(1, self.zeroed(frame), "UDP_CHECKSUM")
        for source in (server.dip, own_address(server, KEY.dynamic6(server.sid))):
            self.drops(3, self.zeroed(conversation.answer(source)), "UDP_CHECKSUM")

    def zeroed(self, frame: bytes) -> bytes:
        at = Frame(frame).l4 + 6
        return overwritten(frame, at, 0, 0)


class Fragments(MalformedTest):
    """QUIC's datagrams are never fragmented (RFC 9000, 14): only the first would have ports."""

    def runTest(self) -> None:
        vip6, vip4 = self.vips()
        frame = bytearray(self.talk(vip4).datagram(long(self.some_cid())))
        for flags in (0x2000, 0x0010, 0x2010):
            struct.pack_into("!H", frame, 20, flags)
            self.drops(1, ipv4_valid(bytes(frame)), "VIP_FRAGMENT")
        for offset in (1, 0x10):
            between = bytes([17, 0]) + offset.to_bytes(2, "big") + bytes(4)
            for to in (None, cookie_address(vip6, KEY.static6(vip6.servers[0].sid))):
                self.drops(1, self.talk(vip6).datagram(short(b""), to, between=between, first=44), "VIP_FRAGMENT")


class WhatElseGoesThere(MalformedTest):
    """To a VIP's address or a cookie prefix, but no QUIC to a served port."""

    def runTest(self) -> None:
        vip6, vip4 = self.vips()
        for vip in (vip6, vip4):
            at = Endpoint(vip.at.address, vip.at.port + 1)
            self.drops(1, Conversation(self.talk(vip).client, at).datagram(long(self.some_cid())), "VIP_NO_SERVICE")
            self.drops(1, Conversation(self.talk(vip).client, at).datagram(b""), "VIP_NO_SERVICE")
            self.drops(1, self.talk(vip).up("S"), "VIP_NO_SERVICE")
        server = vip6.servers[0]
        to = cookie_address(vip6, KEY.static6(server.sid))
        self.drops(1, self.talk(vip6).datagram(short(b""), Endpoint(to.address, 53)), "VIP_NO_SERVICE")
        self.drops(1, Conversation(self.talk(vip6).client, to).up("A"), "VIP_NO_SERVICE")


class NotQuic(MalformedTest):
    """UDP that is no VIP's is routed, whatever it holds, with or without a checksum."""

    def runTest(self) -> None:
        vip6, vip4 = self.vips()
        for vip, other in ((vip6, "2001:db8:2::9"), (vip4, "203.0.113.9")):
            client = self.talk(vip).client
            elsewhere = Endpoint(type(client.address)(other), 443)
            for payload in (b"", b"\x80", b"\xc0\0\0\0\1", short(b"", size=3), long(self.some_cid())):
                frame = Conversation(client, elsewhere).datagram(payload)
                self.passes(1, frame, 2, Frame(frame).rewritten(("02:00:00:00:00:02", "02:00:00:00:01:02")))


class RandomDatagrams(MalformedTest):
    """Thousands of any bytes: each reaches a server of its VIP whole, or is dropped by name."""

    def runTest(self) -> None:
        vips = self.vips()
        for n in range(1500):
            vip = vips[n % 2]
            payload = self.rng.randbytes(self.rng.choice((5, 9, 10, 20, 60, 1199, 1200, 1300)))
            self.send(1, self.talk(vip).datagram(payload))
            if n % 25 == 24:
                self.settle()

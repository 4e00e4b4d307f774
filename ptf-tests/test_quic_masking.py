# SPDX-License-Identifier: Apache-2.0
"""Addresses that a QUIC client sees: the VIP or the server's one cookie address, and no loads."""

from frontage_ptf.balancer import TCP_CONTROL
from frontage_ptf.cookie import Key
from frontage_ptf.frame import UDP, Frame, overwritten
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import QUIC4, QUIC6, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import CCLB4, HASH, IID, Server, Vip
from frontage_ptf.switch import KEY

OTHER = Key(KEY.id + 1, bytes(range(100, 132)))
NO_COOKIE = 0x0123


class MaskingTest(QuicTest):
    def random_dynamic(self, server: Server, x: int, key: Key = KEY) -> Endpoint:
        """Return an address of the server with random signals."""
        rpt, n_af, n_ff = (self.rng.getrandbits(8) for _ in range(3))
        return own_address(server, key.dynamic6(server.sid, rpt, n_af, n_ff, x))


class SourceFollowsX(MaskingTest):
    """X chooses between the VIP and the cookie address of the epoch that the server names, whatever the signals
    are."""

    def runTest(self) -> None:
        self.install_keys(OTHER)
        vip = self.make_quic(4, keys=(KEY, OTHER))
        for server in vip.servers:
            for key in (KEY, OTHER):
                for _ in range(8):
                    conversation = self.new_conversation(vip)
                    self.comes_from(vip.at, conversation.response(self.random_dynamic(server, 0, key)), "INSIGHT")
                    shown = cookie_address(vip, key.static6(server.sid))
                    self.comes_from(shown, conversation.response(self.random_dynamic(server, 1, key)), "INSIGHT")


class ServersWithoutCookieAddressAreMasked(MaskingTest):
    """Without the static cookie of the packet's epoch, the source is the VIP: the server's signals stay inside."""

    def runTest(self) -> None:
        self.install_keys(OTHER)
        vip = self.make_quic(2, keys=(KEY,))
        for server in vip.servers:
            for x in (0, 1):
                source = self.random_dynamic(server, x, OTHER)
                self.comes_from(vip.at, self.new_conversation(vip).response(source), "INSIGHT")


class AtMostTwoAddresses(MaskingTest):
    """Over a connection whose every packet has other signals the client sees the VIP, then the cookie address. No
    other bit changes."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        conversation = self.new_conversation(vip)
        for x in (0, 1):
            seen = set()
            for _ in range(150):
                payload = short(self.foreign_cid(), size=40)
                fate = self.fate(3, conversation.response(self.random_dynamic(server, x), payload))
                assert fate.port is not None, str(fate)
                out = Frame(fate.frame)
                self.assertEqual([], out.bad_checksums())
                self.assertEqual(payload, fate.frame[out.l4 + 8 :])
                seen.add((out.src, out.sport, fate.frame[14:22]))
            self.assertEqual(1, len(seen))


class UnsignalledAddressesAreMasked(MaskingTest):
    """A server without an agent sends from its DIP and is masked as the VIP. A socket at the cookie address keeps
    it."""

    def runTest(self) -> None:
        vip = self.make_quic(3)
        for server in vip.servers:
            self.comes_from(vip.at, self.new_conversation(vip).response(server.dip), "NO_INSIGHT")
            static = KEY.static6(server.sid)
            self.comes_from(
                cookie_address(vip, static), self.new_conversation(vip).response(own_address(server, static)), "NO_INSIGHT"
            )


class StatelessPacketsAreMasked(MaskingTest):
    """Version Negotiation, Retry and stateless reset, with ids of any length, from any address of a server: from
    the VIP, unchanged."""

    def runTest(self) -> None:
        for vip in (self.make_quic(2), self.make_quic(2, 8, QUIC4, HASH, base=32, first_sid=800)):
            server = vip.servers[0]
            for length in (0, 8, 12, 20, 255):
                for payload in (
                    long(self.foreign_cid(length), self.foreign_cid(20), size=7 + length + 20 + 8, version=0, first=0x8A),
                    long(self.foreign_cid(length), KEY.cid(server.sid, 9), size=7 + length + 12 + 40, first=0xF0),
                    short(self.foreign_cid(20), size=21 + length),
                ):
                    with self.subTest(length=length, first=payload[0]):
                        self.comes_from(vip.at, self.new_conversation(vip).response(server.dip, payload), "NO_INSIGHT")
                        if vip.prefix is not None:
                            source = self.random_dynamic(server, 0)
                            self.comes_from(vip.at, self.new_conversation(vip).response(source, payload), "INSIGHT")


class Ipv4ServersAreMasked(MaskingTest):
    """A server is masked as the VIP; IPv4 carries no signals."""

    def runTest(self) -> None:
        vip = self.make_quic(3, 8, QUIC4, HASH)
        for server in vip.servers:
            self.comes_from(vip.at, self.new_conversation(vip).response(server.dip), "NO_INSIGHT")


class UnsealedSourcesDrop(MaskingTest):
    """A server's /64 and port, but an interface id that no key sealed for it, would show the client a third
    address."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        server, other = vip.servers
        dynamic = KEY.dynamic6(server.sid, 1, 2, 3)
        cases = {
            "none": NO_COOKIE,
            "of another server": KEY.dynamic6(other.sid, 1, 2, 3),
            "static, of another server": KEY.static6(other.sid),
            "one bit off": dynamic ^ 1 << 30,
            "static, one bit off": KEY.static6(server.sid) ^ 1,
            "of a key that is not installed": OTHER.dynamic6(server.sid, 1, 2, 3),
            "a connection id": int.from_bytes(KEY.cid(server.sid, 5)[1:9], "big"),
            "another's DIP": int(other.dip.address) & IID ^ 1,
        }
        for name, interface_id in cases.items():
            with self.subTest(name):
                self.drops(3, self.new_conversation(vip).response(own_address(server, interface_id)), "COOKIE_SOURCE")
        self.comes_from(vip.at, self.new_conversation(vip).response(own_address(server, dynamic)), "INSIGHT")


class RandomSourcesDrop(MaskingTest):
    """A thousand valid-looking ids that no key sealed: all are dropped, and no score changes."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_quic(1)
        server = vip.servers[0]
        for n in range(1000):
            interface_id = (0b0110 | KEY.epoch) << 60 | self.rng.getrandbits(60)
            self.send(3, self.new_conversation(vip).response(own_address(server, interface_id)))
            if n % 25 == 24:
                self.settle()
        self.assertEqual({"COOKIE_SOURCE": 1000}, self.all_drops())
        if self.is_softswitch:
            self.wait_for_leaf(server.slot, 0)


class ServicesWithoutCookiePrefixStayAtVip(MaskingTest):
    """A service without a prefix has no cookie addresses: the switch reads its servers' loads, but drops packets
    with X."""

    def runTest(self) -> None:
        vip = self.make_quic(2, prefix=None)
        server = vip.servers[0]
        self.comes_from(vip.at, self.new_conversation(vip).response(self.random_dynamic(server, 0)), "INSIGHT")
        self.drops(3, self.new_conversation(vip).response(self.random_dynamic(server, 1)), "COOKIE_SOURCE")


class SpoofedServersDrop(MaskingTest):
    """Only ports of servers may send from a server's /64 and port."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        for interface_id in (KEY.dynamic6(server.sid), KEY.static6(server.sid), int(server.dip.address) & IID, NO_COOKIE):
            for port in (1, 2):
                self.drops(
                    port, self.new_conversation(vip).response(own_address(server, interface_id), port=port), "SPOOFED_SOURCE"
                )
        vip4 = self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)
        self.drops(1, self.new_conversation(vip4).response(vip4.servers[0].dip, port=1), "SPOOFED_SOURCE")


class OtherPortsOfAServerAreRouted(MaskingTest):
    """Packets from another port of a server, or by TCP from its QUIC port, are routed like transit."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        conversation = self.new_conversation(vip)
        frame = conversation.response(Endpoint(server.dip.address, 53))
        self.passes(3, frame, 1, self.routed(frame))
        frame = conversation.down(server.dip, "A")
        self.passes(3, frame, 1, self.routed(frame))

    def routed(self, frame: bytes) -> bytes:
        return Frame(frame).rewritten(("02:00:00:00:00:01", "02:00:00:00:01:01"))


class LoadsSetTheScore(MaskingTest):
    """Every code of the IPv6 carrier scores as its value, and TCP's codes are a subset."""

    def runTest(self) -> None:
        self.only_on_softswitch("registers to read")
        self.add_class(0, 0.5)
        vip = self.make_quic(1)
        server = vip.servers[0]
        for code in range(256):
            self.load(vip, server, code, 255 - code)
            value = sum(min(0xFFFE, round(8 * self.value(c))) for c in (code, 255 - code))
            headroom = max(1, 0xFFFF - value)
            self.wait_for_leaf(server.slot, headroom << 16 | server.sid)

    def value(self, code: int) -> int:
        return code if code < 8 else (8 + code % 8) << (code // 8 - 1)


class Checksums(MaskingTest):
    """RFC 1624: correct checksums stay correct and wrong ones wrong. Over IPv4 none stays none, and a sum of zero
    is sent as 0xffff."""

    def runTest(self) -> None:
        vip6 = self.make_quic(1)
        vip4 = self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)
        self.up_and_down(vip6)
        self.up_and_down(vip4)
        conversation = self.new_conversation(vip4)
        self.comes_from(vip4.at, self.zeroed(conversation.response(vip4.servers[0].dip)), "NO_INSIGHT")
        self.goes_to(vip4.servers[0], self.zeroed(conversation.datagram(long(self.foreign_cid()))), "ASSIGNED_HASH")

    def up_and_down(self, vip: Vip) -> None:
        server = vip.servers[0]
        for value in range(0, 0x10000, 997):
            # Two bytes of payload can give the checksum any value, including zero.
            payload = short(self.foreign_cid(), size=40) + value.to_bytes(2, "big")
            self.comes_from(vip.at, self.new_conversation(vip).response(server.dip, payload), "NO_INSIGHT")
        conversation = self.new_conversation(vip)
        self.goes_to(server, conversation.datagram(long(self.foreign_cid())))
        out = Frame(self.fate(1, self.becomes_zero(conversation.datagram(long(self.foreign_cid())), server)).frame)
        self.assertEqual(0xFFFF, out.word(6))
        self.assertEqual([], out.bad_checksums())
        wrong = bytearray(conversation.datagram(long(self.foreign_cid())))
        wrong[-1] ^= 0x10
        out = Frame(self.fate(1, bytes(wrong)).frame)
        self.assertEqual(["UDP"], out.bad_checksums())

    def zeroed(self, frame: bytes) -> bytes:
        at = Frame(frame).l4 + 6
        return overwritten(frame, at, 0, 0)

    def becomes_zero(self, frame: bytes, server: Server) -> bytes:
        """Return the frame with its last two bytes chosen so that its checksum on the way to `server` computes to
        zero."""
        out = Frame(frame).rewritten(dst=(server.dip.address, server.dip.port))
        last, checksum = int.from_bytes(frame[-2:], "big"), Frame(out).word(6)
        total = last + checksum
        return Frame(frame[:-2] + (total % 0xFFFF).to_bytes(2, "big")).with_checksums()


class TcpServiceIsIndependent(MaskingTest):
    """A TCP VIP at the same address and port is another service: QUIC's tables do not affect it."""

    def runTest(self) -> None:
        self.skip_without(TCP_CONTROL)
        quic = self.make_quic(2, policy=CCLB4)
        tcp = self.make_vip(2, 9, QUIC6, base=48, first_sid=900)
        flow = self.new_flow(tcp)
        server = tcp.servers[flow.hash & 1]
        self.goes_to(server, flow.up("S"), "ASSIGNED_FALLBACK")
        self.comes_back(tcp, flow.down(server.dip, "SA"), "NO_INSIGHT")
        talk = self.new_conversation(quic)
        self.goes_to(quic.servers[talk.hash & 1], talk.datagram(long(self.foreign_cid())), "ASSIGNED_NO_LOAD")
        self.assertEqual(UDP, quic.protocol)

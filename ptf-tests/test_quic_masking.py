"""What a QUIC client may see of its server: the VIP or the server's one cookie address, and nothing of loads."""

from frontage_ptf.cookie import Key
from frontage_ptf.frame import UDP, Frame, overwritten
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import QUIC4, QUIC6, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import CCLB4, HASH, IID, Server, Vip
from frontage_ptf.switch import KEY

OTHER = Key(KEY.id + 1, bytes(range(100, 132)))
NO_COOKIE = 0x0123


class MaskingTest(QuicTest):
    def some_dynamic(self, server: Server, x: int, key: Key = KEY) -> Endpoint:
        """The server's address of this moment, with random signals."""
        rpt, n_af, n_ff = (self.rng.getrandbits(8) for _ in range(3))
        return own_address(server, key.dynamic6(server.sid, rpt, n_af, n_ff, x))


class VipOrCookieAddress(MaskingTest):
    """By X, whatever the signals are; the cookie address is of the epoch that the server names."""

    def runTest(self) -> None:
        self.install_keys(OTHER)
        vip = self.make_quic(4, keys=(KEY, OTHER))
        for server in vip.servers:
            for key in (KEY, OTHER):
                for _ in range(8):
                    conversation = self.talk(vip)
                    self.comes_from(vip.at, conversation.answer(self.some_dynamic(server, 0, key)), "INSIGHT")
                    shown = cookie_address(vip, key.static6(server.sid))
                    self.comes_from(shown, conversation.answer(self.some_dynamic(server, 1, key)), "INSIGHT")


class AtMostTwoAddresses(MaskingTest):
    """Over a connection whose every packet has other signals: the VIP, then the cookie address. No other bit changes."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        conversation = self.talk(vip)
        for x in (0, 1):
            seen = set()
            for _ in range(150):
                payload = short(self.some_cid(), size=40)
                fate = self.fate(3, conversation.answer(self.some_dynamic(server, x), payload))
                assert fate.port is not None, str(fate)
                out = Frame(fate.frame)
                self.assertEqual([], out.bad_checksums())
                self.assertEqual(payload, fate.frame[out.l4 + 8 :])
                seen.add((out.src, out.sport, fate.frame[14:22]))
            self.assertEqual(1, len(seen))


class OwnAddresses(MaskingTest):
    """A server without an agent sends from its DIP, and is shown as the VIP; one whose socket stands at its cookie address, as that."""

    def runTest(self) -> None:
        vip = self.make_quic(3)
        for server in vip.servers:
            self.comes_from(vip.at, self.talk(vip).answer(server.dip), "NO_INSIGHT")
            static = KEY.static6(server.sid)
            self.comes_from(cookie_address(vip, static), self.talk(vip).answer(own_address(server, static)), "NO_INSIGHT")


class AnswersWithoutAConnection(MaskingTest):
    """Version Negotiation, Retry and stateless reset, of ids of any length, from whatever address a server has: as the VIP's, and whole."""

    def runTest(self) -> None:
        for vip in (self.make_quic(2), self.make_quic(2, 8, QUIC4, HASH, base=32, first_sid=800)):
            server = vip.servers[0]
            for length in (0, 8, 12, 20, 255):
                for payload in (
                    long(self.some_cid(length), self.some_cid(20), size=7 + length + 20 + 8, version=0, first=0x8A),
                    long(self.some_cid(length), KEY.cid(server.sid, 9), size=7 + length + 12 + 40, first=0xF0),
                    short(self.some_cid(20), size=21 + length),
                ):
                    with self.subTest(length=length, first=payload[0]):
                        self.comes_from(vip.at, self.talk(vip).answer(server.dip, payload), "NO_INSIGHT")
                        if vip.prefix is not None:
                            source = self.some_dynamic(server, 0)
                            self.comes_from(vip.at, self.talk(vip).answer(source, payload), "INSIGHT")


class Ipv4(MaskingTest):
    """A server is shown as the VIP; nothing else is there to say."""

    def runTest(self) -> None:
        vip = self.make_quic(3, 8, QUIC4, HASH)
        for server in vip.servers:
            self.comes_from(vip.at, self.talk(vip).answer(server.dip), "NO_INSIGHT")


class UnsealedSources(MaskingTest):
    """From a server's /64 and port, but with an interface id that no key sealed for it: it would show the client a third address."""

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
                self.drops(3, self.talk(vip).answer(own_address(server, interface_id)), "COOKIE_SOURCE")
        self.comes_from(vip.at, self.talk(vip).answer(own_address(server, dynamic)), "INSIGHT")


class RandomSources(MaskingTest):
    """Of a thousand ids that look right but that no key sealed, none is shown and none moves a score."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_quic(1)
        server = vip.servers[0]
        for n in range(1000):
            interface_id = (0b0110 | KEY.epoch) << 60 | self.rng.getrandbits(60)
            self.send(3, self.talk(vip).answer(own_address(server, interface_id)))
            if n % 25 == 24:
                self.settle()
        self.assertEqual({"COOKIE_SOURCE": 1000}, self.all_drops())
        if self.target == "softswitch":
            self.assertEqual(0, self.leaf(server.slot))


class NoCookiePrefix(MaskingTest):
    """A service without one has no cookie addresses: its servers' loads are heard, but X leads nowhere."""

    def runTest(self) -> None:
        vip = self.make_quic(2, prefix=None)
        server = vip.servers[0]
        self.comes_from(vip.at, self.talk(vip).answer(self.some_dynamic(server, 0)), "INSIGHT")
        self.drops(3, self.talk(vip).answer(self.some_dynamic(server, 1)), "COOKIE_SOURCE")


class SpoofedServers(MaskingTest):
    """All of a server's /64, with its port, is the servers' side's alone."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        for interface_id in (KEY.dynamic6(server.sid), KEY.static6(server.sid), int(server.dip.address) & IID, NO_COOKIE):
            for port in (1, 2):
                self.drops(port, self.talk(vip).answer(own_address(server, interface_id), port=port), "SPOOFED_SOURCE")
        vip4 = self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)
        self.drops(1, self.talk(vip4).answer(vip4.servers[0].dip, port=1), "SPOOFED_SOURCE")


class OtherPortsOfAServer(MaskingTest):
    """What a server sends from another port, or by TCP from its QUIC port, is its own business."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        conversation = self.talk(vip)
        frame = conversation.answer(Endpoint(server.dip.address, 53))
        self.passes(3, frame, 1, self.routed(frame))
        frame = conversation.down(server.dip, "A")
        self.passes(3, frame, 1, self.routed(frame))

    def routed(self, frame: bytes) -> bytes:
        return Frame(frame).rewritten(("02:00:00:00:00:01", "02:00:00:00:01:01"))


class LoadsAreHeard(MaskingTest):
    """Every code of the IPv6 carrier is scored as its value says, and TCP's codes are a part of it."""

    def runTest(self) -> None:
        self.only_on_softswitch("registers to read")
        self.add_class(0, 0.5)
        vip = self.make_quic(1)
        server = vip.servers[0]
        for code in range(256):
            self.load(vip, server, code, 255 - code)
            value = sum(min(0xFFFE, round(8 * self.value(c))) for c in (code, 255 - code))
            headroom = max(1, 0xFFFF - value)
            self.assertEqual(headroom << 16 | server.sid, self.leaf(server.slot), f"code {code}")

    def value(self, code: int) -> int:
        return code if code < 8 else (8 + code % 8) << (code // 8 - 1)


class Checksums(MaskingTest):
    """RFC 1624: right stays right and wrong stays wrong; over IPv4 none stays none, and a sum of zero is sent as 0xffff."""

    def runTest(self) -> None:
        vip6 = self.make_quic(1)
        vip4 = self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)
        self.up_and_down(vip6)
        self.up_and_down(vip4)
        conversation = self.talk(vip4)
        self.comes_from(vip4.at, self.zeroed(conversation.answer(vip4.servers[0].dip)), "NO_INSIGHT")
        self.goes_to(vip4.servers[0], self.zeroed(conversation.datagram(long(self.some_cid()))), "ASSIGNED_HASH")

    def up_and_down(self, vip: Vip) -> None:
        server = vip.servers[0]
        for value in range(0, 0x10000, 997):
            # Two bytes of payload make the checksum any value, zero among them.
            payload = short(self.some_cid(), size=40) + value.to_bytes(2, "big")
            self.comes_from(vip.at, self.talk(vip).answer(server.dip, payload), "NO_INSIGHT")
        conversation = self.talk(vip)
        self.goes_to(server, conversation.datagram(long(self.some_cid())))
        out = Frame(self.fate(1, self.becomes_zero(conversation.datagram(long(self.some_cid())), server)).frame)
        self.assertEqual(0xFFFF, out.word(6))
        self.assertEqual([], out.bad_checksums())
        wrong = bytearray(conversation.datagram(long(self.some_cid())))
        wrong[-1] ^= 0x10
        out = Frame(self.fate(1, bytes(wrong)).frame)
        self.assertEqual(["UDP"], out.bad_checksums())

    def zeroed(self, frame: bytes) -> bytes:
        at = Frame(frame).l4 + 6
        return overwritten(frame, at, 0, 0)

    def becomes_zero(self, frame: bytes, server: Server) -> bytes:
        """The frame with its last two bytes such that its checksum, on its way to `server`, is computed as zero."""
        out = Frame(frame).rewritten(dst=(server.dip.address, server.dip.port))
        last, checksum = int.from_bytes(frame[-2:], "big"), Frame(out).word(6)
        total = last + checksum
        return Frame(frame[:-2] + (total % 0xFFFF).to_bytes(2, "big")).with_checksums()


class SealedSourcesOfTcp(MaskingTest):
    """A VIP of TCP at the same address and port is another service: QUIC's tables do not touch it."""

    def runTest(self) -> None:
        quic = self.make_quic(2, policy=CCLB4)
        tcp = self.make_vip(2, 9, QUIC6, base=48, first_sid=900)
        flow = self.new_flow(tcp)
        server = tcp.servers[flow.hash & 1]
        self.goes_to(server, flow.up("S"), "ASSIGNED_FALLBACK")
        self.comes_back(tcp, flow.down(server.dip, "SA"), "NO_INSIGHT")
        talk = self.talk(quic)
        self.goes_to(quic.servers[talk.hash & 1], talk.datagram(long(self.some_cid())), "ASSIGNED_NO_LOAD")
        self.assertEqual(UDP, quic.protocol)

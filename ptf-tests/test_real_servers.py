"""QDSR's real servers: what they send in their load balancers' names, and what they may not."""

from collections.abc import Iterator

from scapy.all import ICMPv6EchoRequest, IPv6ExtHdrFragment, Raw

from frontage_ptf.balancer import VIP4, VIP6
from frontage_ptf.cookie import Key
from frontage_ptf.frame import Frame, overwritten
from frontage_ptf.packets import Endpoint, ethernet, layer3
from frontage_ptf.quic import QUIC4, Conversation, cookie_address, long, own_address, short
from frontage_ptf.real_servers import AUXILIARY, OUTSIDE, OWN, PORTS, RealServerTest
from frontage_ptf.scheduling import UNREPORTED, SchedulerTest
from frontage_ptf.site import CHEETAH_RR, HASH, Server, Vip
from frontage_ptf.switch import KEY
from test_quic_malformed import cut, headless, resized

OTHER = Key(KEY.id + 1, bytes(range(100, 132)))


class InTheBalancersName(RealServerTest):
    """Whatever a stream's RPT, X and key are, its client sees the VIP or the cookie address, and the datagram as it was sent."""

    def runTest(self) -> None:
        self.install_keys(OTHER)
        vip = self.make_quic(2, keys=(KEY, OTHER))
        for server in vip.servers:
            for port in PORTS:
                self.may_send(port, server)
                for key in (KEY, OTHER):
                    for _ in range(4):
                        talk, payload = self.talk(vip), short(self.some_cid(), size=1200)
                        source = self.some_dynamic(server, 0, key=key)
                        self.comes_from(vip.at, talk.answer(source, payload, port), "REAL_SERVER", port=port)
                        shown = cookie_address(vip, key.static6(server.sid))
                        source = self.some_dynamic(server, 1, key=key)
                        self.comes_from(shown, talk.answer(source, payload, port), "REAL_SERVER", port=port)


class OtherAddressesOfTheBalancer(RealServerTest):
    """One that has no keys sends from the DIP; one that answers a client at its cookie address may send from just that."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        self.may_send(4, server)
        self.comes_from(vip.at, self.talk(vip).answer(server.dip, port=4), "REAL_SERVER", port=4)
        static = KEY.static6(server.sid)
        self.comes_from(
            cookie_address(vip, static), self.talk(vip).answer(own_address(server, static), port=4), "REAL_SERVER", port=4
        )


class OverIpv4(RealServerTest):
    def runTest(self) -> None:
        vip = self.make_quic(2, 8, QUIC4, CHEETAH_RR)
        self.may_send(4, vip.servers[0])
        self.comes_from(vip.at, self.talk(vip).answer(vip.servers[0].dip, port=4), "REAL_SERVER", port=4)
        self.drops(4, self.talk(vip).answer(vip.servers[1].dip, port=4), "REAL_SERVER_SOURCE")


class LoadsAreSecondHand(RealServerTest):
    """What the load balancer said of itself stays, and what it said of draining; unless it sends from there itself."""

    def runTest(self) -> None:
        self.only_on_softswitch("registers to read")
        self.add_class(0, 0.5)
        vip = self.make_quic(2)
        server, draining = vip.servers
        self.may_send(4, server, draining)
        self.load(vip, server, 3, 1)
        self.load(vip, draining, 3, 1)
        said = self.leaf(server.slot), self.leaf(draining.slot)
        draining.active = False
        self.site.update_server(vip, draining)
        for sender in vip.servers:
            for x in (0, 1):
                shown = vip.at if x == 0 else cookie_address(vip, KEY.static6(sender.sid))
                self.comes_from(shown, self.talk(vip).answer(self.some_dynamic(sender, x), port=4), "REAL_SERVER", port=4)
        self.assertEqual(said, (self.leaf(server.slot), self.leaf(draining.slot)))
        self.site.modify(self.sender(4, server, second_hand=False))
        source = own_address(server, KEY.dynamic6(server.sid, 9, 5, 5))
        self.comes_from(vip.at, self.talk(vip).answer(source, port=4), "INSIGHT", port=4)
        self.assertEqual((0xFFFF - 5 * 16) << 16 | server.sid, self.leaf(server.slot))


class EachStreamIsScheduled(SchedulerTest, RealServerTest):
    """By the RPT that its own real server writes: of one connection's streams, the short one finds room where the long one does not."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        self.may_send(4, server)
        self.may_send(5, server)
        self.use_aifo(1, 10, window=4, report_every=UNREPORTED, default_rank=200)
        for smaller, limit in enumerate((9, 1, 1, 1, 1)):
            self.set_limit(1, smaller, limit)
        talk = self.talk(vip)
        packets = {rpt: talk.answer(self.some_dynamic(server, rpt=rpt), port=port) for rpt, port in ((10, 4), (160, 5))}
        for _ in range(2):
            self.comes_from(vip.at, packets[10], "REAL_SERVER", port=4)
        for _ in range(3):
            self.drops(5, packets[160], "AIFO")
            self.comes_from(vip.at, packets[10], "REAL_SERVER", port=4)
        # Without a cookie it has the port's own rank, as what it says to clients by itself has.
        self.drops(4, talk.answer(server.dip, port=4), "AIFO")
        self.assertEqual({160 >> 3: 3, 200 >> 3: 1}, self.bands())


class NotInThisName(RealServerTest):
    """A real server sends for those that its port is entered for, as long as it is, and from its own address; from nothing else."""

    def runTest(self) -> None:
        vip, vip4 = self.make_quic(2), self.make_quic(2, 8, QUIC4, HASH, base=32, first_sid=800)
        web, web6 = self.make_vip(1, 9, VIP4, base=48), self.make_vip(1, 10, VIP6, base=49, first_sid=110)
        server, other = vip.servers
        self.may_send(4, server)
        self.may_send(5, other)
        self.comes_from(vip.at, self.talk(vip).answer(self.some_dynamic(server), port=4), "REAL_SERVER", port=4)
        for frame in (
            self.talk(vip).answer(self.some_dynamic(other), port=4),
            self.talk(vip).answer(other.dip, port=4),
            self.talk(vip4).answer(vip4.servers[0].dip, port=4),
            self.new_flow(web).down(web.servers[0].dip, "SA", port=4),
            self.new_flow(web6).down(web6.servers[0].dip, "SA", port=4),
            *self.foreign(vip, server),
        ):
            self.drops(4, frame, "REAL_SERVER_SOURCE")
        self.drops(5, self.talk(vip).answer(self.some_dynamic(server), port=5), "REAL_SERVER_SOURCE")
        self.site.delete(self.sender(4, server))
        self.drops(4, self.talk(vip).answer(self.some_dynamic(server), port=4), "REAL_SERVER_SOURCE")

    def foreign(self, vip: Vip, server: Server) -> Iterator[bytes]:
        """From what is neither a server's address and port nor the real server's own."""
        talk = self.talk(vip)
        for source in (
            vip.at,
            cookie_address(vip, KEY.static6(server.sid)),
            Endpoint(server.dip.address, AUXILIARY),
            Endpoint(OWN[5, 6], AUXILIARY),
            Endpoint(OUTSIDE[6], 50000),
        ):
            yield talk.answer(source, port=4)
        yield talk.down(server.dip, port=4)  # TCP from a server of QUIC
        head = layer3(server.dip.address, talk.client.address, first=44)
        yield bytes(ethernet(4) / head / IPv6ExtHdrFragment(nh=17, m=1) / Raw(bytes(64)))
        yield bytes(ethernet(4) / layer3(server.dip.address, talk.client.address, first=58) / ICMPv6EchoRequest())
        # To a VIP too: the load balancer would answer somebody else.
        yield Conversation(Endpoint(OUTSIDE[6], 50000), vip.at).datagram(long(self.some_cid()), port=4)


class UnsealedSources(RealServerTest):
    """The load balancer's /64 is opened to a real server no further than to the load balancer itself."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        server, other = vip.servers
        self.may_send(4, server)
        dynamic = KEY.dynamic6(server.sid, 1, 2, 3)
        for interface_id in (
            0x0123,
            KEY.dynamic6(other.sid),
            KEY.static6(other.sid),
            dynamic ^ 1 << 30,
            OTHER.dynamic6(server.sid),
        ):
            self.drops(4, self.talk(vip).answer(own_address(server, interface_id), port=4), "COOKIE_SOURCE")


class Malformed(RealServerTest):
    """By the same names as from a server, where enough is there to know a server by."""

    def runTest(self) -> None:
        for vip in (self.make_quic(1), self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)):
            server, version = vip.servers[0], vip.at.address.version
            frame = self.talk(vip).answer(server.dip, port=4)
            for length in (0, 7, 69, 0xFFFF):
                self.drops(4, resized(frame, length), "UDP_HEADER")
            for size in range(10):
                self.drops(4, cut(frame, size), "QUIC_HEADER")
            for size in range(8):
                self.drops(4, headless(frame, size), "REAL_SERVER_SOURCE")  # without ports, no server's
            for size in range(Frame(frame).l4, len(frame) - 1):
                self.drops(4, frame[:size], f"IPV{version}_HEADER")
            if version == 6:
                at = Frame(frame).l4 + 6
                self.drops(4, overwritten(frame, at, 0, 0), "UDP_CHECKSUM")


class RandomSources(RealServerTest):
    """Of 1,500 datagrams from any ids of the load balancer's /64, none is shown and none is lost."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        self.may_send(4, server)
        for n in range(1500):
            source = own_address(server, (0b0110 | KEY.epoch) << 60 | self.rng.getrandbits(60))
            payload = short(self.rng.randbytes(20), size=self.rng.choice((21, 60, 1200)))
            self.send(4, self.talk(vip).answer(source, payload, port=4))
            if n % 25 == 24:
                self.settle()
        self.assertEqual({"COOKIE_SOURCE": 1500}, self.all_drops())


class WhatEachSentIsCounted(RealServerTest):
    def runTest(self) -> None:
        vip = self.make_quic(2)
        for port in PORTS:
            self.may_send(port, *vip.servers)
        frames = [(port, vip.servers[n], n + 1) for n in (0, 1) for port in PORTS]
        for port, server, count in frames:
            for _ in range(count):
                frame = self.talk(vip).answer(self.some_dynamic(server), port=port)
                self.comes_from(vip.at, frame, "REAL_SERVER", port=port)
            self.assertEqual((count, count * len(frame)), self.said(port, server))

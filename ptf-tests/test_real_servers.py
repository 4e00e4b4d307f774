# SPDX-License-Identifier: Apache-2.0
"""QDSR's real servers: packets in their load balancers' names, and packets that are dropped."""

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


class RealServersSendAsTheirBalancer(RealServerTest):
    """For every RPT, X and key, the client sees the VIP or the cookie address, and the datagram unchanged."""

    def runTest(self) -> None:
        self.install_keys(OTHER)
        vip = self.make_quic(2, keys=(KEY, OTHER))
        for server in vip.servers:
            for port in PORTS:
                self.may_send(port, server)
                for key in (KEY, OTHER):
                    for _ in range(4):
                        talk, payload = self.new_conversation(vip), short(self.foreign_cid(), size=1200)
                        source = self.random_dynamic(server, 0, key=key)
                        self.comes_from(vip.at, talk.response(source, payload, port), "REAL_SERVER", port=port)
                        shown = cookie_address(vip, key.static6(server.sid))
                        source = self.random_dynamic(server, 1, key=key)
                        self.comes_from(shown, talk.response(source, payload, port), "REAL_SERVER", port=port)


class OtherAddressesOfTheBalancer(RealServerTest):
    """A real server without keys sends from the DIP; for a client at the cookie address, it may send from that
    address itself."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        self.may_send(4, server)
        self.comes_from(vip.at, self.new_conversation(vip).response(server.dip, port=4), "REAL_SERVER", port=4)
        static = KEY.static6(server.sid)
        self.comes_from(
            cookie_address(vip, static),
            self.new_conversation(vip).response(own_address(server, static), port=4),
            "REAL_SERVER",
            port=4,
        )


class OverIpv4(RealServerTest):
    def runTest(self) -> None:
        vip = self.make_quic(2, 8, QUIC4, CHEETAH_RR)
        self.may_send(4, vip.servers[0])
        self.comes_from(vip.at, self.new_conversation(vip).response(vip.servers[0].dip, port=4), "REAL_SERVER", port=4)
        self.drops(4, self.new_conversation(vip).response(vip.servers[1].dip, port=4), "REAL_SERVER_SOURCE")


class LoadsOfRealServersAreIgnored(RealServerTest):
    """The load balancer's own reports and draining stay in force, unless the packet comes from its own port."""

    def runTest(self) -> None:
        self.only_on_softswitch("registers to read")
        self.add_class(0, 0.5)
        vip = self.make_quic(2)
        server, draining = vip.servers
        self.may_send(4, server, draining)
        self.load(vip, server, 3, 1)
        self.load(vip, draining, 3, 1)
        self.wait_for(lambda: all(self.leaf(one.slot) for one in vip.servers), True, "whether the leaves are written")
        said = self.leaf(server.slot), self.leaf(draining.slot)
        draining.active = False
        self.site.update_server(vip, draining)
        for sender in vip.servers:
            for x in (0, 1):
                shown = vip.at if x == 0 else cookie_address(vip, KEY.static6(sender.sid))
                self.comes_from(
                    shown, self.new_conversation(vip).response(self.random_dynamic(sender, x), port=4), "REAL_SERVER", port=4
                )
        self.assertEqual(said, (self.leaf(server.slot), self.leaf(draining.slot)))
        self.site.modify(self.sender(4, server, second_hand=False))
        source = own_address(server, KEY.dynamic6(server.sid, 9, 5, 5))
        self.comes_from(vip.at, self.new_conversation(vip).response(source, port=4), "INSIGHT", port=4)
        self.wait_for_leaf(server.slot, (0xFFFF - 5 * 16) << 16 | server.sid)


class EachResponseIsScheduled(SchedulerTest, RealServerTest):
    """Each real server writes the RPT of its own response: of one connection, the short response is admitted where
    the long one is not."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        self.may_send(4, server)
        self.may_send(5, server)
        self.use_aifo(1, 10, window=4, report_every=UNREPORTED, default_rank=200)
        for smaller, limit in enumerate((9, 1, 1, 1, 1)):
            self.set_limit(1, smaller, limit)
        talk = self.new_conversation(vip)
        packets = {rpt: talk.response(self.random_dynamic(server, rpt=rpt), port=port) for rpt, port in ((10, 4), (160, 5))}
        for _ in range(2):
            self.comes_from(vip.at, packets[10], "REAL_SERVER", port=4)
        for _ in range(3):
            self.drops(5, packets[160], "AIFO")
            self.comes_from(vip.at, packets[10], "REAL_SERVER", port=4)
        # A packet without a cookie, or from the real server's own address, has the port's rank.
        self.drops(4, talk.response(server.dip, port=4), "AIFO")
        self.assertEqual({160 >> 3: 3, 200 >> 3: 1}, self.bands())


class OtherNamesDrop(RealServerTest):
    """A real server sends for the servers that its port is entered for, while it is, and from its own address; from
    no other."""

    def runTest(self) -> None:
        vip, vip4 = self.make_quic(2), self.make_quic(2, 8, QUIC4, HASH, base=32, first_sid=800)
        web, web6 = self.make_vip(1, 9, VIP4, base=48), self.make_vip(1, 10, VIP6, base=49, first_sid=110)
        server, other = vip.servers
        self.may_send(4, server)
        self.may_send(5, other)
        self.comes_from(vip.at, self.new_conversation(vip).response(self.random_dynamic(server), port=4), "REAL_SERVER", port=4)
        for frame in (
            self.new_conversation(vip).response(self.random_dynamic(other), port=4),
            self.new_conversation(vip).response(other.dip, port=4),
            self.new_conversation(vip4).response(vip4.servers[0].dip, port=4),
            self.new_flow(web).down(web.servers[0].dip, "SA", port=4),
            self.new_flow(web6).down(web6.servers[0].dip, "SA", port=4),
            *self.foreign(vip, server),
        ):
            self.drops(4, frame, "REAL_SERVER_SOURCE")
        self.drops(5, self.new_conversation(vip).response(self.random_dynamic(server), port=5), "REAL_SERVER_SOURCE")
        self.site.delete(self.sender(4, server))
        self.drops(4, self.new_conversation(vip).response(self.random_dynamic(server), port=4), "REAL_SERVER_SOURCE")

    def foreign(self, vip: Vip, server: Server) -> Iterator[bytes]:
        """Yield packets whose source is neither a server's address and port nor the real server's own address."""
        talk = self.new_conversation(vip)
        for source in (
            vip.at,
            cookie_address(vip, KEY.static6(server.sid)),
            Endpoint(server.dip.address, AUXILIARY),
            Endpoint(OWN[5, 6], AUXILIARY),
            Endpoint(OUTSIDE[6], 50000),
        ):
            yield talk.response(source, port=4)
        yield talk.down(server.dip, port=4)  # TCP from a QUIC server
        head = layer3(server.dip.address, talk.client.address, first=44)
        yield bytes(ethernet(4) / head / IPv6ExtHdrFragment(nh=17, m=1) / Raw(bytes(64)))
        yield bytes(ethernet(4) / layer3(server.dip.address, talk.client.address, first=58) / ICMPv6EchoRequest())
        # To a VIP as well: the load balancer would respond to another host.
        yield Conversation(Endpoint(OUTSIDE[6], 50000), vip.at).datagram(long(self.foreign_cid()), port=4)


class UnsealedSourcesDrop(RealServerTest):
    """A real server may use the same addresses of the load balancer's /64 as the load balancer itself."""

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
            self.drops(4, self.new_conversation(vip).response(own_address(server, interface_id), port=4), "COOKIE_SOURCE")


class MalformedPacketsDrop(RealServerTest):
    """For the same reasons as from a server, if the packet is complete enough to name a server."""

    def runTest(self) -> None:
        for vip in (self.make_quic(1), self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)):
            server, version = vip.servers[0], vip.at.address.version
            frame = self.new_conversation(vip).response(server.dip, port=4)
            for length in (0, 7, 69, 0xFFFF):
                self.drops(4, resized(frame, length), "UDP_HEADER")
            for size in range(10):
                self.drops(4, cut(frame, size), "QUIC_HEADER")
            for size in range(8):
                self.drops(4, headless(frame, size), "REAL_SERVER_SOURCE")  # without ports the server is unknown
            for size in range(Frame(frame).l4, len(frame) - 1):
                self.drops(4, frame[:size], f"IPV{version}_HEADER")
            if version == 6:
                at = Frame(frame).l4 + 6
                self.drops(4, overwritten(frame, at, 0, 0), "UDP_CHECKSUM")


class RandomSourcesDrop(RealServerTest):
    """Of 1,500 datagrams from random ids of the load balancer's /64, none passes and each is counted."""

    def runTest(self) -> None:
        vip = self.make_quic(1)
        server = vip.servers[0]
        self.may_send(4, server)
        for n in range(1500):
            source = own_address(server, (0b0110 | KEY.epoch) << 60 | self.rng.getrandbits(60))
            payload = short(self.rng.randbytes(20), size=self.rng.choice((21, 60, 1200)))
            self.send(4, self.new_conversation(vip).response(source, payload, port=4))
            if n % 25 == 24:
                self.settle()
        self.assertEqual({"COOKIE_SOURCE": 1500}, self.all_drops())


class PacketsCountByPortAndServer(RealServerTest):
    def runTest(self) -> None:
        vip = self.make_quic(2)
        for port in PORTS:
            self.may_send(port, *vip.servers)
        frames = [(port, vip.servers[n], n + 1) for n in (0, 1) for port in PORTS]
        for port, server, count in frames:
            for _ in range(count):
                frame = self.new_conversation(vip).response(self.random_dynamic(server), port=port)
                self.comes_from(vip.at, frame, "REAL_SERVER", port=port)
            self.assertEqual((count, self.counted_bytes([frame] * count)), self.sender_count(port, server))

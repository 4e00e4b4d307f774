"""Who reaches a real server: the load balancers and others within the site, by its own address. Clients never do."""

from collections.abc import Iterator
from ipaddress import ip_address

from scapy.all import ICMP, ICMPv6EchoRequest, IPv6ExtHdrFragment, Raw

from frontage_ptf.balancer import VIP4
from frontage_ptf.frame import IP, Frame, ipv4_valid
from frontage_ptf.packets import Endpoint, Flow, ethernet, layer3, linux_syn
from frontage_ptf.quic import QUIC4, QUIC6, Conversation, cookie_address, long, short
from frontage_ptf.real_servers import AUXILIARY, OUTSIDE, OWN, PORTS, RealServerTest, between
from frontage_ptf.site import HASH
from frontage_ptf.switch import KEY
from frontage_ptf.tunnel import Tunnel, TunnelTest, vtep

INSIDE = {4: ip_address("10.1.0.9"), 6: ip_address("fd12:3456:a::9")}


class KindsTest(RealServerTest):
    def kinds(self, source: IP, to: IP, port: int) -> Iterator[bytes]:
        for dport in (443, 8443, AUXILIARY):
            flow = between(source, 50000, to, dport)
            yield flow.up("S", linux_syn(1), port=port)
            yield Conversation(flow.client, flow.vip).datagram(short(self.some_cid()), port=port)
            yield Conversation(flow.client, flow.vip).datagram(long(self.some_cid()), port=port)
        if to.version == 4:
            yield bytes(ethernet(port) / layer3(source, to, first=1) / ICMP(type=8))
            yield bytes(ethernet(port) / layer3(source, to, first=47) / Raw(bytes(20)))
            fragment = bytearray(between(source, 50000, to, 443).up(port=port))
            fragment[20] |= 0x20
            yield ipv4_valid(bytes(fragment))
        else:
            yield bytes(ethernet(port) / layer3(source, to, first=58) / ICMPv6EchoRequest())
            yield bytes(ethernet(port) / layer3(source, to, first=59))
            yield bytes(ethernet(port) / layer3(source, to, first=44) / IPv6ExtHdrFragment(nh=17, offset=9) / Raw(bytes(64)))


class UplinkIsTheBalancers(RealServerTest):
    """While real servers answer, all that a client sends reaches its load balancer, and no table learns of real servers."""

    def runTest(self) -> None:
        vip = self.make_quic(2, policy=HASH)
        talk = self.talk(vip)
        server = vip.servers[talk.hash & 1]
        self.may_send(4, server)
        self.may_send(5, server)
        self.goes_to(server, talk.datagram(long(self.some_cid())), "ASSIGNED_HASH")
        claims = self.claims()
        static = cookie_address(vip, KEY.static6(server.sid))
        for n in range(1, 9):
            port = PORTS[n % 2]
            self.comes_from(vip.at, talk.answer(self.some_dynamic(server), port=port), "REAL_SERVER", port=port)
            self.goes_to(server, talk.datagram(short(KEY.cid(server.sid, n))), "RETRIEVED_CID")
            self.goes_to(server, talk.datagram(long(self.some_cid(), size=100)), "RETRIEVED_HANDSHAKE")
            self.comes_from(static, talk.answer(self.some_dynamic(server, 1), port=port), "REAL_SERVER", port=port)
            self.goes_to(server, talk.datagram(short(self.some_cid()), static), "RETRIEVED_ADDRESS")
        self.assertEqual(claims, self.claims())
        # To whom only a real server spoke, nobody is known.
        stranger = self.talk(vip)
        self.comes_from(vip.at, stranger.answer(self.some_dynamic(server), long(self.some_cid()), 4), "REAL_SERVER", port=4)
        self.drops(1, stranger.datagram(long(self.some_cid(), size=100)), "QUIC_SMALL")
        self.drops(1, stranger.datagram(short(self.some_cid())), "QUIC_NO_CONNECTION")


class NothingFromOutside(KindsTest):
    """By whatever protocol, to whatever port, a real server's own address is the site's alone; so it is as a source."""

    def runTest(self) -> None:
        for (_, version), address in OWN.items():
            for frame in self.kinds(OUTSIDE[version], address, 1):
                self.drops(1, frame, "REAL_SERVER_EXTERNAL")
            for frame in self.kinds(address, INSIDE[version], 1):
                self.drops(1, frame, "SPOOFED_SOURCE")
        # Or a load balancer's answer, to whoever claims to be there, would reach it.
        for vip in (self.make_quic(1), self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)):
            spoofed = Conversation(Endpoint(OWN[4, vip.at.address.version], 50000), vip.at)
            self.drops(1, spoofed.datagram(long(self.some_cid())), "SPOOFED_SOURCE")
        web = self.make_vip(1, 9, VIP4, base=48)
        self.drops(1, Flow(Endpoint(OWN[4, 4], 50000), web.at).up("S", linux_syn(1)), "SPOOFED_SOURCE")


class WithinTheSite(KindsTest):
    """Load balancer and real server, and two real servers, speak by their own addresses; a real server may be a VIP's client like any."""

    def runTest(self) -> None:
        for (port, version), address in OWN.items():
            for frame in self.kinds(INSIDE[version], address, 3):
                self.forwards(3, frame, port)
            for frame in self.kinds(address, INSIDE[version], port):
                self.forwards(port, frame, 3)
            for frame in self.kinds(address, OWN[9 - port, version], port):
                self.forwards(port, frame, 9 - port)
        vip = self.make_quic(2, policy=HASH)
        talk = Conversation(Endpoint(OWN[4, 6], 50000), vip.at)
        self.goes_to(vip.servers[talk.hash & 1], talk.datagram(long(self.some_cid()), port=4), "ASSIGNED_HASH", port=4)


class BalancerAndRealServerInOne(RealServerTest):
    """A balancer that is a real server too has its DIP as its own address: its uplink comes by the VIP, as ever, and by nothing else."""

    def runTest(self) -> None:
        vip = self.make_quic(1, policy=HASH)
        server = vip.servers[0]
        dip = server.dip.address
        self.site.insert(
            [self.own(dip, 4), self.table("destination6", {"dst": int(dip)}, "external_source"), self.sender(4, server, False)]
        )
        self.site.insert([self.site.route(f"{dip}/128", 4)])
        talk = self.talk(vip)
        fate = self.fate(1, talk.datagram(long(self.some_cid())))
        self.assertEqual((4, dip), (fate.port, Frame(fate.frame).dst), str(fate))
        self.comes_from(vip.at, talk.answer(self.some_dynamic(server), port=4), "INSIGHT", port=4)
        self.drops(1, Conversation(talk.client, server.dip).datagram(long(self.some_cid())), "REAL_SERVER_EXTERNAL")
        self.forwards(
            4, Conversation(Endpoint(dip, AUXILIARY), Endpoint(INSIDE[6], 443)).datagram(long(self.some_cid()), port=4), 3
        )


class OutOfATunnel(TunnelTest, RealServerTest):
    """Another site is outside, too: by its port, and by what it brings in a tunnel."""

    def _begin(self) -> None:
        RealServerTest._begin(self)
        TunnelTest._begin(self)

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        self.drops(
            2, Conversation(Endpoint(vtep(2, 6), 50000), Endpoint(OWN[4, 6], 443)).datagram(b"", port=2), "REAL_SERVER_EXTERNAL"
        )
        answer = Conversation(Endpoint(OWN[4, 6], 50000), vip.at).answer(vip.at)
        self.drops(2, self.from_site(2, 1).into(answer), "REAL_SERVER_EXTERNAL")
        first = Conversation(Endpoint(OWN[4, 6], 50000), vip.at).datagram(long(self.some_cid()))
        self.drops(2, self.from_site(2, 2).into(first), "SPOOFED_SOURCE")
        # And a real server speaks for no site.
        self.drops(4, Tunnel(OWN[4, 6], vtep(1, 6), 2).into(first, 4), "TUNNEL_PEER")
        self.drops(4, Tunnel(vtep(2, 6), vtep(3, 6), 2).into(first, 4), "REAL_SERVER_SOURCE")

# SPDX-License-Identifier: Apache-2.0
"""Reachability of real servers: load balancers and other hosts of the site reach them by their own address, clients
never do."""

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
            yield Conversation(flow.client, flow.vip).datagram(short(self.foreign_cid()), port=port)
            yield Conversation(flow.client, flow.vip).datagram(long(self.foreign_cid()), port=port)
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


class ClientsReachOnlyTheBalancer(RealServerTest):
    """While real servers respond, all packets of a client reach its load balancer, and no table contains a real
    server."""

    def runTest(self) -> None:
        vip = self.make_quic(2, policy=HASH)
        talk = self.new_conversation(vip)
        server = vip.servers[talk.hash & 1]
        self.may_send(4, server)
        self.may_send(5, server)
        self.goes_to(server, talk.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        claims = self.claims()
        static = cookie_address(vip, KEY.static6(server.sid))
        for n in range(1, 9):
            port = PORTS[n % 2]
            self.comes_from(vip.at, talk.response(self.random_dynamic(server), port=port), "REAL_SERVER", port=port)
            self.goes_to(server, talk.datagram(short(KEY.cid(server.sid, n))), "RETRIEVED_CID")
            self.goes_to(server, talk.datagram(long(self.foreign_cid(), size=100)), "RETRIEVED_HANDSHAKE")
            self.comes_from(static, talk.response(self.random_dynamic(server, 1), port=port), "REAL_SERVER", port=port)
            self.goes_to(server, talk.datagram(short(self.foreign_cid()), static), "RETRIEVED_ADDRESS")
        self.assertEqual(claims, self.claims())
        # A client that only received packets from a real server has no table entry.
        stranger = self.new_conversation(vip)
        self.comes_from(vip.at, stranger.response(self.random_dynamic(server), long(self.foreign_cid()), 4), "REAL_SERVER", port=4)
        self.drops(1, stranger.datagram(long(self.foreign_cid(), size=100)), "QUIC_SMALL")
        self.drops(1, stranger.datagram(short(self.foreign_cid())), "QUIC_NO_CONNECTION")


class ExternalPacketsDrop(KindsTest):
    """For every protocol and port, packets from outside to or from a real server's own address are dropped."""

    def runTest(self) -> None:
        for (_, version), address in OWN.items():
            for frame in self.kinds(OUTSIDE[version], address, 1):
                self.drops(1, frame, "REAL_SERVER_EXTERNAL")
            for frame in self.kinds(address, INSIDE[version], 1):
                self.drops(1, frame, "SPOOFED_SOURCE")
        # Otherwise a load balancer's response to a spoofed source would reach the real server.
        for vip in (self.make_quic(1), self.make_quic(1, 8, QUIC4, HASH, base=32, first_sid=800)):
            spoofed = Conversation(Endpoint(OWN[4, vip.at.address.version], 50000), vip.at)
            self.drops(1, spoofed.datagram(long(self.foreign_cid())), "SPOOFED_SOURCE")
        web = self.make_vip(1, 9, VIP4, base=48)
        self.drops(1, Flow(Endpoint(OWN[4, 4], 50000), web.at).up("S", linux_syn(1)), "SPOOFED_SOURCE")


class HostsOfTheSiteReachRealServers(KindsTest):
    """A load balancer and a real server, and two real servers, use their own addresses. A real server may also be a
    VIP's client."""

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
        self.goes_to(vip.servers[talk.hash & 1], talk.datagram(long(self.foreign_cid()), port=4), "ASSIGNED_HASH", port=4)


class BalancerAndRealServerInOne(RealServerTest):
    """A load balancer that is also a real server has its DIP as its own address: clients still reach it through the
    VIP only."""

    def runTest(self) -> None:
        vip = self.make_quic(1, policy=HASH)
        server = vip.servers[0]
        dip = server.dip.address
        self.site.insert(
            [
                self.own_source(dip, 4),
                self.table("destination6", {"dst": int(dip)}, "external_source"),
                self.sender(4, server, False),
            ]
        )
        self.site.insert([self.site.route(f"{dip}/128", 4)])
        talk = self.new_conversation(vip)
        fate = self.fate(1, talk.datagram(long(self.foreign_cid())))
        self.assertEqual((4, dip), (fate.port, Frame(fate.frame).dst), str(fate))
        self.comes_from(vip.at, talk.response(self.random_dynamic(server), port=4), "INSIGHT", port=4)
        self.drops(1, Conversation(talk.client, server.dip).datagram(long(self.foreign_cid())), "REAL_SERVER_EXTERNAL")
        self.forwards(
            4, Conversation(Endpoint(dip, AUXILIARY), Endpoint(INSIDE[6], 443)).datagram(long(self.foreign_cid()), port=4), 3
        )


class PacketsFromOtherSitesDrop(TunnelTest, RealServerTest):
    """Another site is outside, too: by its port and by the packets in its tunnels."""

    def _begin(self) -> None:
        RealServerTest._begin(self)
        TunnelTest._begin(self)

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        self.drops(
            2, Conversation(Endpoint(vtep(2, 6), 50000), Endpoint(OWN[4, 6], 443)).datagram(b"", port=2), "REAL_SERVER_EXTERNAL"
        )
        answer = Conversation(Endpoint(OWN[4, 6], 50000), vip.at).response(vip.at)
        self.drops(2, self.from_site(2, 1).into(answer), "REAL_SERVER_EXTERNAL")
        first = Conversation(Endpoint(OWN[4, 6], 50000), vip.at).datagram(long(self.foreign_cid()))
        self.drops(2, self.from_site(2, 2).into(first), "SPOOFED_SOURCE")
        # A real server cannot send for a site.
        self.drops(4, Tunnel(OWN[4, 6], vtep(1, 6), 2).into(first, 4), "TUNNEL_PEER")
        self.drops(4, Tunnel(vtep(2, 6), vtep(3, 6), 2).into(first, 4), "REAL_SERVER_SOURCE")

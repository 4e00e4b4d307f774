# SPDX-License-Identifier: Apache-2.0
"""Tunnels: packets from them, packets into them, and packets that are dropped."""

from ipaddress import ip_address

from scapy.all import ARP, ICMP, Ether, ICMPv6EchoRequest, IPv6, Raw
from scapy.all import IP as Ip4

from frontage_ptf.frame import Frame, overwritten, with_extension
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, Flow, linux_syn
from frontage_ptf.quic import QUIC4, QUIC6, Conversation, long
from frontage_ptf.site import port_of
from frontage_ptf.tunnel import DISPATCHERS, ENDS, OWN, SITE_PORT, Tunnel, TunnelTest, vtep

WAYS = [(version, gre) for version in (4, 6) for gre in (False, True)]


class FirstFlightFromASite(TunnelTest):
    """Every kind of tunnel, around packets of both IP versions: they go to a replica, in a tunnel and unchanged."""

    def runTest(self) -> None:
        vips = [self.make_service(QUIC4, 1, number=1), self.make_service(QUIC6, 2, number=2)]
        for self.outer_version, self.gre in WAYS:
            for vip in vips:
                talk, frame = self.initial(vip)
                replica = self.to_replica(vip, self.hashed(vip, talk), 2)
                self.leaves_in(replica, frame, talk, self.from_site(2, 2).into(frame), SITE_PORT, "ASSIGNED_HASH")
                again = self.from_site(2, 2).into(frame)  # its retransmission finds the handshake
                self.leaves_in(replica, frame, talk, again, SITE_PORT, "RETRIEVED_HANDSHAKE")


class ResponseToTheClient(TunnelTest):
    """From another site, a replica of this one and a dispatcher: the client sees the service address, without a
    tunnel."""

    def runTest(self) -> None:
        for vip in [self.make_service(QUIC4, 1, number=1), self.make_service(QUIC6, 2, number=2)]:
            version = vip.at.address.version
            dip = vip.servers[1].dip.address
            for self.outer_version, self.gre in WAYS:
                talk = self.new_conversation(vip)
                sent = self.from_site(3, OWN).into(self.reply(talk))
                self.comes_naked(talk, sent, SITE_PORT)
            for source, port in ((dip, 3), (DISPATCHERS[version], 4)):
                talk = self.new_conversation(vip)
                self.comes_naked(talk, Tunnel(source, ENDS[version], OWN).into(self.reply(talk), port), port)

    def comes_naked(self, talk: Flow, sent: bytes, port: int) -> None:
        expected = Frame(self.reply(talk)).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1]))  # type: ignore[arg-type]
        self.passes(port, sent, 1, expected, "RESPONSE_CLIENT")


class ResponseToTheOriginSite(TunnelTest):
    """A replica's response goes on to the site where its client enters, with the same id, over any kind of tunnel."""

    def runTest(self) -> None:
        vips = [self.make_service(QUIC4, 1, number=1), self.make_service(QUIC6, 2, number=2)]
        for version, gre in WAYS:
            self.reach(version, gre)
            for vip in vips:
                talk = self.new_conversation(vip)
                back = self.reply(talk)
                sent = self.to_replica(vip, vip.servers[0], 4).back().into(back, 3)
                on = Tunnel(vtep(OWN, version), vtep(4, version), 4, gre)
                self.leaves_in(on, back, talk, sent, 3, "RESPONSE_SITE")
            self.site.delete(*(self.through(1, n, vtep(OWN, version), vtep(n, version), gre) for n in range(2, 6)))


class TunnelsFromClientPortsDrop(TunnelTest):
    """A client's port cannot send into a tunnel, to this switch or to any known endpoint."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        for target in (vtep(OWN, 6), vtep(3, 6), DISPATCHERS[6], vip.servers[0].dip.address):
            for gre in (False, True):
                forged = Tunnel(vtep(2, 6), target, 2, gre).into(frame, 1)
                self.drops(1, forged, "TUNNEL_FORGED")
                self.drops(1, with_extension(forged, 44), "TUNNEL_FORGED")  # a fragment of a tunnel
                self.drops(1, with_extension(forged, 60, 9), "TUNNEL_FORGED")  # more headers than the parser follows
        for target in (vtep(OWN, 4), vtep(3, 4), DISPATCHERS[4]):
            for gre in (False, True):
                forged = Tunnel(vtep(2, 4), target, 2, gre).into(frame, 1)
                self.drops(1, forged, "TUNNEL_FORGED")
                fragment = bytearray(forged)
                fragment[20] |= 0x20
                self.drops(1, Frame(bytes(fragment)).with_checksums(), "TUNNEL_FORGED")
        other = Tunnel(vtep(2, 6), ip_address("2001:db8:2::77"), 2).into(frame, 1)  # an unknown endpoint
        self.passes(1, other, 2, Frame(other).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))


class UnknownPeersDrop(TunnelTest):
    """A peer is accepted on its side of the switch only, and while it is installed."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        talk, frame = self.initial(vip)
        back = self.reply(talk)
        dip = vip.servers[0].dip.address
        for source, port in ((ip_address("2001:db8:2::77"), 2), (vtep(2, 6), 3), (dip, SITE_PORT), (DISPATCHERS[6], SITE_PORT)):
            for gre in (False, True):
                self.drops(port, Tunnel(source, vtep(OWN, 6), 2, gre).into(frame, port), "TUNNEL_PEER")
        from_replica = Tunnel(dip, vtep(OWN, 6), OWN).into(back, 3)
        self.passes(3, from_replica, 1, Frame(back).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1])), "RESPONSE_CLIENT")
        self.site.delete(self.peer(dip, 2, 0, vip.servers[0].sid + 1))
        self.drops(3, from_replica, "TUNNEL_PEER")
        self.site.delete(*self.site_entries(2, 6))
        self.drops(SITE_PORT, self.from_site(2, 2).into(frame), "TUNNEL_PEER")

        vip = self.make_service(QUIC4, 1, number=1)
        _, frame = self.initial(vip)
        dip = vip.servers[0].dip.address
        for source, port in ((ip_address("203.0.113.77"), 2), (vtep(2, 4), 3), (dip, SITE_PORT), (DISPATCHERS[4], SITE_PORT)):
            self.drops(port, Tunnel(source, vtep(OWN, 4), 2).into(frame, port), "TUNNEL_PEER")


class OtherPacketsToEndpointDrop(TunnelTest):
    """Packets to the local endpoint that are neither VXLAN nor GRE are dropped on every side."""

    def runTest(self) -> None:
        for version in (4, 6):
            client = Endpoint({4: ip_address("198.51.100.9"), 6: ip_address("2001:db8:1::9")}[version], 4000)
            for port in (80, 4788):
                flow = Conversation(client, Endpoint(vtep(OWN, version), port))
                for side in (1, 2, 3):
                    self.drops(side, flow.datagram(b"nothing here", port=side), "VIP_NO_SERVICE")
                    self.drops(side, flow.up("S", linux_syn(1), port=side), "VIP_NO_SERVICE")


class TransitTunnelsAreRouted(TunnelTest):
    """A dispatcher's tunnels to other sites and to replicas are transit."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        for target in (vtep(2, 6), vip.servers[0].dip.address):
            for gre in (False, True):
                sent = Tunnel(DISPATCHERS[6], target, OWN, gre).into(frame, 4)
                to = port_of(target)
                self.passes(4, sent, to, Frame(sent).rewritten((PORT_MAC[to], NEIGHBOR_MAC[to])))


class OnlyServiceAddressesEnter(TunnelTest):
    """Other sites may only send first flights to service addresses."""

    def runTest(self) -> None:
        self.make_service(QUIC6, 2, number=2)
        vip4 = self.make_service(QUIC4, 1, number=1)
        plain = self.make_quic(1, 5, Endpoint(QUIC6.address + 5, 443), 1, base=96, first_sid=500, prefix=None)
        talk, frame = self.initial(plain)
        self.drops(SITE_PORT, self.from_site(2, 2).into(frame), "TUNNEL_INNER")  # a VIP, but not a service address
        client, server = str(talk.client.address), str(QUIC6.address)
        head = Ether(src=NEIGHBOR_MAC[2], dst=PORT_MAC[2])
        for inner in (
            head / ARP(op=1, hwsrc=NEIGHBOR_MAC[2], psrc="192.0.2.9", pdst=str(QUIC4.address)),
            head / Ip4(src="198.51.100.7", dst="10.1.0.3", proto=99) / Raw(bytes(40)),
            head / IPv6(src=client, dst="fd12:3456:a::7", nh=59),
            head / Ip4(src="198.51.100.7", dst="203.0.113.200") / ICMP(),
        ):
            self.drops(SITE_PORT, self.from_site(2, 2).into(bytes(inner)), "TUNNEL_INNER")
        ping = head / IPv6(src=client, dst=server) / ICMPv6EchoRequest()
        # A program for several pipes drops everything but TCP and UDP where it removes the outer headers.
        reason = "VIP_NO_SERVICE" if self.client.program.control("nested") is None else "TUNNEL_INNER"
        self.drops(SITE_PORT, self.from_site(2, 2).into(bytes(ping)), reason)
        syn = Flow(talk.client, QUIC6).up("S", linux_syn(1))
        self.drops(SITE_PORT, self.from_site(2, 2).into(syn), "VIP_NO_SERVICE")
        # The inner packet passes the same checks as any packet.
        talk4, frame4 = self.initial(vip4)
        self.drops(SITE_PORT, self.from_site(2, 2).into(overwritten(frame4, 24, 0, 0)), "IPV4_CHECKSUM")
        last = talk4.datagram(long(self.foreign_cid()))
        worn = Frame(last).rewritten(hops=63)
        self.drops(SITE_PORT, self.from_site(2, 2).into(worn), "TTL")


class MissingTunnelsDrop(TunnelTest):
    """Packets to a site or a replica whose tunnel is not installed are dropped."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2, count=1)
        talk, frame = self.initial(vip)
        back = Tunnel(vip.servers[0].dip.address, vtep(OWN, 6), 3).into(self.reply(talk), 3)
        self.drops(3, back, "NO_TUNNEL")
        dip = vip.servers[0].dip.address
        self.site.delete(self.through(3, vip.servers[0].sid, ENDS[6], dip))
        self.drops(SITE_PORT, self.from_site(2, 2).into(frame), "NO_TUNNEL")

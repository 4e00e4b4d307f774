"""Tunnels: what comes out of them, what goes into them, and what may not."""

from ipaddress import ip_address

from scapy.all import ARP, ICMP, Ether, ICMPv6EchoRequest, IPv6, Raw
from scapy.all import IP as Ip4

from base.frame import Frame
from base.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, Flow, linux_syn
from base.quic import QUIC4, QUIC6, Conversation, long
from base.site import port_of
from base.tunnel import DISPATCHERS, ENDS, OWN, SITE_PORT, Tunnel, TunnelTest, vtep

WAYS = [(version, gre) for version in (4, 6) for gre in (False, True)]


class FirstFlightFromASite(TunnelTest):
    """Every kind of tunnel, around both kinds of packet: on to a replica, in a tunnel and unchanged."""

    def runTest(self) -> None:
        vips = [self.make_service(QUIC4, 1, number=1), self.make_service(QUIC6, 2, number=2)]
        for self.outer_version, self.gre in WAYS:
            for vip in vips:
                talk, frame = self.initial(vip)
                replica = self.to_replica(vip, self.hashed(vip, talk), 2)
                self.leaves_in(replica, frame, talk, self.from_site(2, 2).into(frame), SITE_PORT, "ASSIGNED_HASH")
                again = self.from_site(2, 2).into(frame)  # its retransmission finds the handshake
                self.leaves_in(replica, frame, talk, again, SITE_PORT, "RETRIEVED_HANDSHAKE")


class AnswerToTheClient(TunnelTest):
    """From another site, from a replica of this one, and from a dispatcher: the client sees the service address, and no tunnel."""

    def runTest(self) -> None:
        for vip in [self.make_service(QUIC4, 1, number=1), self.make_service(QUIC6, 2, number=2)]:
            version = vip.at.address.version
            dip = vip.servers[1].dip.address
            for self.outer_version, self.gre in WAYS:
                talk = self.talk(vip)
                sent = self.from_site(3, OWN).into(self.reply(talk))
                self.comes_naked(talk, sent, SITE_PORT)
            for source, port in ((dip, 3), (DISPATCHERS[version], 4)):
                talk = self.talk(vip)
                self.comes_naked(talk, Tunnel(source, ENDS[version], OWN).into(self.reply(talk), port), port)

    def comes_naked(self, talk: Flow, sent: bytes, port: int) -> None:
        expected = Frame(self.reply(talk)).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1]))  # type: ignore[arg-type]
        self.passes(port, sent, 1, expected, "ANSWER_CLIENT")


class AnswerToTheOriginSite(TunnelTest):
    """A replica's answer goes on to the site where its client came in, under the same id, over any kind of tunnel."""

    def runTest(self) -> None:
        vips = [self.make_service(QUIC4, 1, number=1), self.make_service(QUIC6, 2, number=2)]
        for version, gre in WAYS:
            self.reach(version, gre)
            for vip in vips:
                talk = self.talk(vip)
                back = self.reply(talk)
                sent = self.to_replica(vip, vip.servers[0], 4).back().into(back, 3)
                on = Tunnel(vtep(OWN, version), vtep(4, version), 4, gre)
                self.leaves_in(on, back, talk, sent, 3, "ANSWER_SITE")
            self.site.delete(*(self.through(1, n, vtep(OWN, version), vtep(n, version), gre) for n in range(2, 6)))


class Forged(TunnelTest):
    """A client's port is no way into a tunnel: neither of this switch, nor of anyone that we know."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        for target in (vtep(OWN, 6), vtep(3, 6), DISPATCHERS[6], vip.servers[0].dip.address):
            for gre in (False, True):
                forged = Tunnel(vtep(2, 6), target, 2, gre).into(frame, 1)
                self.drops(1, forged, "TUNNEL_FORGED")
                self.drops(1, with_extension(forged, 44), "TUNNEL_FORGED")  # a fragment of one
                self.drops(1, with_extension(forged, 60, 9), "TUNNEL_FORGED")  # more headers than the parser follows
        for target in (vtep(OWN, 4), vtep(3, 4), DISPATCHERS[4]):
            for gre in (False, True):
                forged = Tunnel(vtep(2, 4), target, 2, gre).into(frame, 1)
                self.drops(1, forged, "TUNNEL_FORGED")
                fragment = bytearray(forged)
                fragment[20] |= 0x20
                self.drops(1, Frame(bytes(fragment)).with_checksums(), "TUNNEL_FORGED")
        other = Tunnel(vtep(2, 6), ip_address("2001:db8:2::77"), 2).into(frame, 1)  # nobody's end that we know
        self.passes(1, other, 2, Frame(other).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))


class Strangers(TunnelTest):
    """Peers count on their side of the switch only, and as long as they are peers."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        talk, frame = self.initial(vip)
        back = self.reply(talk)
        dip = vip.servers[0].dip.address
        for source, port in ((ip_address("2001:db8:2::77"), 2), (vtep(2, 6), 3), (dip, SITE_PORT), (DISPATCHERS[6], SITE_PORT)):
            for gre in (False, True):
                self.drops(port, Tunnel(source, vtep(OWN, 6), 2, gre).into(frame, port), "TUNNEL_PEER")
        from_replica = Tunnel(dip, vtep(OWN, 6), OWN).into(back, 3)
        self.passes(3, from_replica, 1, Frame(back).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1])), "ANSWER_CLIENT")
        self.site.delete(self.peer(dip, 2, 0, vip.servers[0].sid + 1))
        self.drops(3, from_replica, "TUNNEL_PEER")
        self.site.delete(*self.site_entries(2, 6))
        self.drops(SITE_PORT, self.from_site(2, 2).into(frame), "TUNNEL_PEER")


class WrongIds(TunnelTest):
    """A site brings what came in there and answers to what came in here; a host of ours answers to sites that there are."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        talk, frame = self.initial(vip)
        back = self.reply(talk)
        for self.gre in (False, True):
            for wrong in (0, 3, 9, 0x100 | 2, 0x10000 | 2, 0xFFFFFF):
                self.drops(SITE_PORT, self.from_site(2, wrong).into(frame), "TUNNEL_ORIGIN")
            for wrong in (0, 9, 0x100 | 2, 0x10000 | OWN):
                self.drops(3, Tunnel(vip.servers[0].dip.address, vtep(OWN, 6), wrong, self.gre).into(back, 3), "TUNNEL_ORIGIN")
        wide = Tunnel(vtep(2, 6), vtep(OWN, 6), 1 << 24 | 2, gre=True)
        self.drops(SITE_PORT, wide.into(frame), "TUNNEL_ORIGIN")


class WrongSources(TunnelTest):
    """A replica answers as its own service, a site and a dispatcher as any; nobody as something else."""

    def runTest(self) -> None:
        own, other = self.make_service(QUIC6, 2, number=2), self.make_service(Endpoint(QUIC6.address + 1, 443), 3, number=3)
        self.make_service(QUIC4, 1, number=1)
        client = self.talk(own).client
        dip = own.servers[0].dip.address
        wrong = [other.at, Endpoint(own.at.address, 444), own.servers[0].dip, Endpoint(vtep(OWN, 6), 443), Endpoint(client.address, 443)]
        for source in wrong:
            back = self.talk(own).answer(source, port=3)
            self.drops(3, Tunnel(dip, vtep(OWN, 6), OWN).into(back, 3), "TUNNEL_SOURCE")
            self.drops(3, Tunnel(dip, vtep(OWN, 6), 4).into(back, 3), "TUNNEL_SOURCE")
            if source != other.at:
                self.drops(SITE_PORT, self.from_site(2, OWN).into(back), "TUNNEL_SOURCE")
        tcp = Flow(Endpoint(client.address, client.port), own.at).down(own.at, "A")
        self.drops(3, Tunnel(dip, vtep(OWN, 6), OWN).into(tcp, 3), "TUNNEL_SOURCE")


class WrongHeaders(TunnelTest):
    """What is no plain VXLAN with a VNI, nor GRE with just a key."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        vxlan, gre = (Tunnel(vtep(2, 6), vtep(OWN, 6), 2, g).into(frame) for g in (False, True))
        self.drops(SITE_PORT, patched(vxlan, 62, 0x00), "TUNNEL_HEADER")
        for flags in (0x0000, 0x2001, 0xA000, 0x3000, 0x8000):
            self.drops(SITE_PORT, patched(gre, 54, flags >> 8, flags & 255), "TUNNEL_HEADER")
        self.drops(SITE_PORT, with_extension(vxlan, 60), "TUNNEL_HEADER")
        self.drops(SITE_PORT, with_extension(gre, 44), "TUNNEL_HEADER")
        for length in (0, 8, 29, len(vxlan) - 54 + 1, 0xFFFF):
            self.drops(SITE_PORT, patched(vxlan, 58, length >> 8, length & 255), "TUNNEL_HEADER")
        self.outer_version = 4
        plain = self.from_site(2, 2).into(frame)
        options = bytearray(plain[:34] + bytes([1, 1, 1, 1]) + plain[34:])
        options[14] = 0x46
        options[16:18] = (len(options) - 14).to_bytes(2, "big")
        self.drops(SITE_PORT, Frame(bytes(options)).with_checksums(), "TUNNEL_HEADER")
        self.drops(SITE_PORT, patched(vxlan, 82, 0x81, 0x00), "ETHERTYPE")  # inside, a VLAN


class Truncated(TunnelTest):
    """Cut anywhere, inside or out, it is dropped by name; and by its outer length, not by the frame's."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        talk, frame = self.initial(vip)
        self.outer_version = 4
        for self.gre in (False, True):
            whole = self.from_site(2, 2).into(frame)
            inner = len(whole) - len(frame) + (0 if not self.gre else 14)
            for end in [*range(14, inner + 16, 3), *range(inner + 16, len(whole), 197)]:
                self.assertIsNotNone(self.fate(SITE_PORT, whole[:end]).reason, f"cut at {end}")
            for end in [*range(0, 75, 3), 500, len(frame) - 15]:
                cut = self.from_site(2, 2).into(frame[: 14 + end])
                padded = cut + bytes(max(0, 1500 - len(cut)))  # what is behind the tunnel's end is not the packet's
                for sent in (cut, padded):
                    reason = self.fate(SITE_PORT, sent).reason
                    self.assertIn(reason, {"IPV6_HEADER", "TRUNCATED"}, f"inner cut at {end}")
            replica = self.to_replica(vip, self.hashed(vip, talk), 2)
            to, out = replica.out(frame, talk)
            self.assertEqual((to, out), (port_of(replica.dst), self.fate(SITE_PORT, whole).frame))


class NoTunnelAtAll(TunnelTest):
    """To our end of tunnels, from whichever side, but not by VXLAN nor GRE: it goes nowhere."""

    def runTest(self) -> None:
        for version in (4, 6):
            client = Endpoint({4: ip_address("198.51.100.9"), 6: ip_address("2001:db8:1::9")}[version], 4000)
            for port in (80, 4788):
                flow = Conversation(client, Endpoint(vtep(OWN, version), port))
                for side in (1, 2, 3):
                    self.drops(side, flow.datagram(b"nothing here", port=side), "VIP_NO_SERVICE")
                    self.drops(side, flow.up("S", linux_syn(1), port=side), "VIP_NO_SERVICE")


class PassingBy(TunnelTest):
    """A dispatcher's tunnels to other sites and to replicas are none of this switch's."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        for target in (vtep(2, 6), vip.servers[0].dip.address):
            for gre in (False, True):
                sent = Tunnel(DISPATCHERS[6], target, OWN, gre).into(frame, 4)
                to = port_of(target)
                self.passes(4, sent, to, Frame(sent).rewritten((PORT_MAC[to], NEIGHBOR_MAC[to])))


class Damaged(TunnelTest):
    """Random bytes in lengths, ids and what is inside: dropped by name, or on to a replica, or out as the service address; nothing else."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        self.reach(6)
        dips = {server.dip.address for server in vip.servers}
        for gre in (False, True):
            inner = 62 if gre else 84
            places = [18, 19, *([*range(54, inner)] if gre else [58, 59, *range(62, inner)]), *range(inner, inner + 70)]
            for _ in range(60):
                talk, frame = self.initial(vip)
                out = self.fate(SITE_PORT, self.damaged(Tunnel(vtep(2, 6), vtep(OWN, 6), 2, gre).into(frame), places))
                if out.reason is None:
                    left = Frame(out.frame)
                    self.assertEqual((3, True, 4789), (out.port, left.dst in dips, left.dport), str(out))
                dip = self.rng.choice(sorted(dips))
                out = self.fate(3, self.damaged(Tunnel(dip, vtep(OWN, 6), OWN, gre).into(self.reply(talk), 3), places))
                if out.reason is None:
                    left = Frame(out.frame)
                    if left.src == vtep(OWN, 6):  # on to another site
                        left = Frame(out.frame[:14] + out.frame[84:])
                    self.assertEqual((vip.at.address, vip.at.port), (left.src, left.sport), str(out))

    def damaged(self, frame: bytes, places: list[int]) -> bytes:
        data = bytearray(frame)
        for at in self.rng.sample(places, self.rng.randint(1, 4)):
            data[at] = self.rng.choice((0, 1, 255, data[at] ^ 1 << self.rng.randrange(8)))
        return bytes(data)


class Nested(TunnelTest):
    """A tunnel in a tunnel, to whatever end."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        for gre in (False, True):
            for end in (vtep(OWN, 6), vtep(3, 6), DISPATCHERS[6], vip.servers[0].dip.address):
                inner = Tunnel(vtep(2, 6), end, 2, gre).into(frame)
                self.drops(SITE_PORT, self.from_site(2, 2).into(inner), "TUNNEL_NESTED")
                disguised = Tunnel(vip.at.address, end, 2, gre).into(frame)
                self.drops(3, Tunnel(vip.servers[0].dip.address, vtep(OWN, 6), OWN).into(disguised, 3), "TUNNEL_NESTED")


class NotForAService(TunnelTest):
    """First flights to service addresses, and nothing else, come in from other sites."""

    def runTest(self) -> None:
        self.make_service(QUIC6, 2, number=2)
        vip4 = self.make_service(QUIC4, 1, number=1)
        plain = self.make_quic(1, 5, Endpoint(QUIC6.address + 5, 443), 1, base=96, first_sid=500, prefix=None)
        talk, frame = self.initial(plain)
        self.drops(SITE_PORT, self.from_site(2, 2).into(frame), "TUNNEL_INNER")  # a VIP, but no service address
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
        self.drops(SITE_PORT, self.from_site(2, 2).into(bytes(ping)), "VIP_NO_SERVICE")
        syn = Flow(talk.client, QUIC6).up("S", linux_syn(1))
        self.drops(SITE_PORT, self.from_site(2, 2).into(syn), "VIP_NO_SERVICE")
        # What is checked of every packet is checked of what was inside.
        talk4, frame4 = self.initial(vip4)
        self.drops(SITE_PORT, self.from_site(2, 2).into(patched(frame4, 24, 0, 0)), "IPV4_CHECKSUM")
        last = talk4.datagram(long(self.some_cid()))
        worn = Frame(last).rewritten(hops=63)
        self.drops(SITE_PORT, self.from_site(2, 2).into(worn), "TTL")


class NoTunnel(TunnelTest):
    """To a site or a replica whose tunnel is not installed."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2, count=1)
        talk, frame = self.initial(vip)
        back = Tunnel(vip.servers[0].dip.address, vtep(OWN, 6), 3).into(self.reply(talk), 3)
        self.drops(3, back, "NO_TUNNEL")
        dip = vip.servers[0].dip.address
        self.site.delete(self.through(3, vip.servers[0].sid, ENDS[6], dip))
        self.drops(SITE_PORT, self.from_site(2, 2).into(frame), "NO_TUNNEL")


def patched(frame: bytes, at: int, *values: int) -> bytes:
    return frame[:at] + bytes(values) + frame[at + len(values) :]


def with_extension(frame: bytes, kind: int, units: int = 0) -> bytes:
    """An IPv6 frame with an extension header of this type more."""
    head = bytearray(frame[:54])
    extra = bytes([head[20], units, 0, 0, 0, 0, 0, 0]) + bytes(8 * units)
    head[20] = kind
    head[18:20] = (int.from_bytes(head[18:20], "big") + len(extra)).to_bytes(2, "big")
    return bytes(head) + extra + frame[54:]

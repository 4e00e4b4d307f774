# SPDX-License-Identifier: Apache-2.0
"""Invalid tunnels: wrong ids, sources and headers, truncated, damaged, nested."""

from frontage_ptf.frame import Frame, overwritten, with_extension
from frontage_ptf.packets import Endpoint, Flow
from frontage_ptf.quic import QUIC4, QUIC6
from frontage_ptf.site import port_of
from frontage_ptf.tunnel import DISPATCHERS, OWN, SITE_PORT, Tunnel, TunnelTest, vtep


class WrongIdsDrop(TunnelTest):
    """A site sends packets that entered there and responses to those that entered here; a local host responds to
    known sites."""

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


class WrongSourcesDrop(TunnelTest):
    """A replica responds from its own service address, a site and a dispatcher from any; other sources are dropped."""

    def runTest(self) -> None:
        own, other = self.make_service(QUIC6, 2, number=2), self.make_service(Endpoint(QUIC6.address + 1, 443), 3, number=3)
        own4 = self.make_service(QUIC4, 1, number=1)
        client = self.new_conversation(own).client
        dip = own.servers[0].dip.address
        wrong = [
            other.at,
            Endpoint(own.at.address, 444),
            own.servers[0].dip,
            Endpoint(vtep(OWN, 6), 443),
            Endpoint(client.address, 443),
        ]
        for source in wrong:
            back = self.new_conversation(own).response(source, port=3)
            self.drops(3, Tunnel(dip, vtep(OWN, 6), OWN).into(back, 3), "TUNNEL_SOURCE")
            self.drops(3, Tunnel(dip, vtep(OWN, 6), 4).into(back, 3), "TUNNEL_SOURCE")
            if source != other.at:
                self.drops(SITE_PORT, self.from_site(2, OWN).into(back), "TUNNEL_SOURCE")
        tcp = Flow(Endpoint(client.address, client.port), own.at).down(own.at, "A")
        self.drops(3, Tunnel(dip, vtep(OWN, 6), OWN).into(tcp, 3), "TUNNEL_SOURCE")
        back = self.new_conversation(own4).response(Endpoint(own4.at.address, 444), port=3)
        self.drops(3, Tunnel(own4.servers[0].dip.address, vtep(OWN, 4), OWN).into(back, 3), "TUNNEL_SOURCE")


class WrongHeadersDrop(TunnelTest):
    """Headers other than plain VXLAN with a VNI and GRE with only a key."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        vxlan, gre = (Tunnel(vtep(2, 6), vtep(OWN, 6), 2, g).into(frame) for g in (False, True))
        self.drops(SITE_PORT, overwritten(vxlan, 62, 0x00), "TUNNEL_HEADER")
        for flags in (0x0000, 0x2001, 0xA000, 0x3000, 0x8000):
            self.drops(SITE_PORT, overwritten(gre, 54, flags >> 8, flags & 255), "TUNNEL_HEADER")
        self.drops(SITE_PORT, with_extension(vxlan, 60), "TUNNEL_HEADER")
        self.drops(SITE_PORT, with_extension(gre, 44), "TUNNEL_HEADER")
        for length in (0, 8, 29, len(vxlan) - 54 + 1, 0xFFFF):
            self.drops(SITE_PORT, overwritten(vxlan, 58, length >> 8, length & 255), "TUNNEL_HEADER")
        self.outer_version = 4
        plain = self.from_site(2, 2).into(frame)
        options = bytearray(plain[:34] + bytes([1, 1, 1, 1]) + plain[34:])
        options[14] = 0x46
        options[16:18] = (len(options) - 14).to_bytes(2, "big")
        self.drops(SITE_PORT, Frame(bytes(options)).with_checksums(), "TUNNEL_HEADER")
        self.drops(SITE_PORT, overwritten(vxlan, 82, 0x81, 0x00), "ETHERTYPE")  # a VLAN tag in the inner frame


class TruncatedTunnelsDrop(TunnelTest):
    """Cut anywhere, inside or outside, it drops for a named reason, by its outer length and not the frame's."""

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
                padded = cut + bytes(max(0, 1500 - len(cut)))  # bytes after the outer length are padding
                for sent in (cut, padded):
                    reason = self.fate(SITE_PORT, sent).reason
                    self.assertIn(reason, {"IPV6_HEADER", "TRUNCATED"}, f"inner cut at {end}")
            replica = self.to_replica(vip, self.hashed(vip, talk), 2)
            to, out = replica.out(frame, talk)
            self.assertEqual((to, out), (port_of(replica.dst), self.fate(SITE_PORT, whole).frame))


class Damaged(TunnelTest):
    """Random bytes in lengths, ids and inner packets: dropped for a named reason, sent to a replica, or sent from
    the service address."""

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


class NestedTunnelsDrop(TunnelTest):
    """A tunnel in a tunnel, to any endpoint."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=2)
        _, frame = self.initial(vip)
        for gre in (False, True):
            for end in (vtep(OWN, 6), vtep(3, 6), DISPATCHERS[6], vip.servers[0].dip.address):
                inner = Tunnel(vtep(2, 6), end, 2, gre).into(frame)
                self.drops(SITE_PORT, self.from_site(2, 2).into(inner), "TUNNEL_NESTED")
                disguised = Tunnel(vip.at.address, end, 2, gre).into(frame)
                self.drops(3, Tunnel(vip.servers[0].dip.address, vtep(OWN, 6), OWN).into(disguised, 3), "TUNNEL_NESTED")

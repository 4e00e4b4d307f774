# SPDX-License-Identifier: Apache-2.0
"""Remote servers: servers that the switch reaches through a tunnel (docs/remote-servers.md)."""

import struct
from collections.abc import Iterator

from scapy.all import ICMP, Ether, ICMPv6EchoRequest, ICMPv6PacketTooBig, IPv6, Raw
from scapy.all import IP as Ip4

from frontage_ptf.balancer import VIP4, VIP6
from frontage_ptf.cookie import dynamic_tsval
from frontage_ptf.frame import Frame, overwritten, with_extension
from frontage_ptf.packets import MSS, NEIGHBOR_MAC, NOP, PORT_MAC, Endpoint, Flow, linux_syn, stamped, windows_syn
from frontage_ptf.quic import PREFIX, QUIC4, QUIC6, cookie_address, long, own_address, short
from frontage_ptf.remote import GENEVE, GRE, IP_IN_IP, KINDS, UNDERLAY_PORT, VXLAN, RemoteTest, ServerTunnel
from frontage_ptf.site import HASH, Server, Vip
from frontage_ptf.switch import KEY, to_server
from frontage_ptf.tunnel import ENDS

SERVER_PORT = 3
OUTERS = (4, 6)
MSS_KEPT, MSS_CLAMPED, MSS_UNKNOWN = 0, 1, 2


def with_mss(options: bytes, mss: int) -> bytes:
    """Return options that begin with the maximum segment size, with another value."""
    return options[:2] + struct.pack("!H", mss) + options[4:]


class Tunnelled(RemoteTest):
    """Every kind of tunnel, over both IP versions, around packets of both."""

    def cases(self) -> Iterator[tuple[Vip, Server, ServerTunnel]]:
        """Yield a VIP, its only server and the server's tunnel, in every combination."""
        number = 1
        for at in (VIP4, VIP6):
            for kind in KINDS:
                for outer in OUTERS:
                    # Each VIP has an address of its own.
                    own = Endpoint(at.address + number, at.port)
                    vip = self.make_vip(1, number, own, policy=HASH, base=number, first_sid=200 + number)
                    server = vip.servers[0]
                    yield vip, server, self.tunnel_to(server, kind, outer)
                    number += 1


class ConnectionsPassTunnels(Tunnelled):
    """A whole TCP connection: SYN, SYN-ACK with cookie, and a segment that finds its server by the cookie."""

    def runTest(self) -> None:
        for vip, server, tunnel in self.cases():
            with self.subTest(f"{tunnel} {vip.at}"):
                mss = self.put_behind(server, tunnel)
                flow = self.new_flow(vip)
                before = self.segments()
                syn, clamped = (flow.up("S", with_mss(linux_syn(7), value)) for value in (1460, min(1460, mss)))
                inner = Frame(clamped).rewritten(dst=(server.dip.address, server.dip.port))
                self.passes(1, syn, UNDERLAY_PORT, tunnel.out(inner, flow), "ASSIGNED_HASH")
                dynamic = dynamic_tsval(9, 1, 2, 3)
                static = KEY.static_tsval(server.sid, flow.hash, 9)
                back = flow.down(server.dip, "SA", with_mss(linux_syn(dynamic, 7), 536), ck=1, port=UNDERLAY_PORT)
                self.comes_out_of(tunnel, vip, back, "INSIGHT", tsval=static, ck=0)
                segment = flow.up("A", stamped(8, static), bytes(mss - 12))
                self.goes_into(tunnel, server, segment, flow, "RETRIEVED_COOKIE")
                answer = flow.down(server.dip, "A", stamped(dynamic, 8), bytes(mss - 12), ck=1, port=UNDERLAY_PORT)
                self.comes_out_of(tunnel, vip, answer, "INSIGHT", tsval=static, ck=0)
                after = self.segments()
                self.assertEqual(1, after.get(MSS_CLAMPED, 0) - before.get(MSS_CLAMPED, 0))
                self.assertEqual(1, after.get(MSS_KEPT, 0) - before.get(MSS_KEPT, 0))


class SynAcksAreClamped(Tunnelled):
    """The SYN-ACK tells the client how long its segments may be; without timestamps, too."""

    def runTest(self) -> None:
        for vip, server, tunnel in self.cases():
            mss = self.put_behind(server, tunnel, 1400)
            for options in (linux_syn(1), windows_syn(), MSS):
                flow = self.new_flow(vip)
                syn, clamped = (flow.up("S", with_mss(options, value)) for value in (8960, mss))
                inner = Frame(clamped).rewritten(dst=(server.dip.address, server.dip.port))
                self.passes(1, syn, UNDERLAY_PORT, tunnel.out(inner, flow))
                back, clamped = (flow.down(server.dip, "SA", with_mss(options, value), port=UNDERLAY_PORT) for value in (8960, mss))
                expected = Frame(clamped).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1]), src=(vip.at.address, vip.at.port))
                self.passes(UNDERLAY_PORT, tunnel.back().into(back), 1, expected)
                # Only in SYNs does the option count.
                self.goes_into(tunnel, server, flow.up("A", with_mss(options, 8960)), flow)


class UnknownMssIsCounted(RemoteTest):
    """A SYN whose first option is not the maximum segment size passes unchanged."""

    def runTest(self) -> None:
        vip = self.make_vip(1, policy=HASH)
        server = vip.servers[0]
        tunnel = self.tunnel_to(server, VXLAN, 4)
        self.put_behind(server, tunnel)
        for number, options in enumerate((b"", NOP * 4 + MSS, stamped(5) + MSS), 1):
            flow = self.new_flow(vip)
            self.goes_into(tunnel, server, flow.up("S", options), flow)
            self.assertEqual({MSS_UNKNOWN: number}, self.segments())


class ReportTest(Tunnelled):
    """The client of a packet that does not fit into the tunnel learns the limit from ICMP."""

    def reports(self, frame: bytes, limit: int, source: Endpoint, quoted: int) -> None:
        """Check the report about `frame`: to its sender, from its destination."""
        sent = Frame(frame)
        head = Ether(src=PORT_MAC[1], dst=NEIGHBOR_MAC[1])
        quote = Raw(frame[14 : sent.l4 + quoted])
        if source.address.version == 4:
            report = head / Ip4(src=str(source.address), dst=str(sent.src), ttl=64, id=0, flags="DF")
            report /= ICMP(type=3, code=4, nexthopmtu=limit) / quote
        else:
            report = head / IPv6(src=str(source.address), dst=str(sent.src), hlim=64) / ICMPv6PacketTooBig(mtu=limit) / quote
        self.passes(1, frame, 1, bytes(report), "TOO_LONG")


class TooLongSegmentsAreReported(ReportTest):
    """Segments of TCP, in every kind of tunnel."""

    def runTest(self) -> None:
        for vip, server, tunnel in self.cases():
            room = self.put_behind(server, tunnel, 1400)
            for excess in (0, 1, 2, 100):
                flow = self.new_flow(vip)
                frame = flow.up("A", payload=self.rng.randbytes(room + excess))
                if excess == 0:
                    self.goes_into(tunnel, server, frame, flow)
                else:
                    self.reports(frame, 1400 - tunnel.overhead, vip.at, 20)


class TooLongDatagramsAreReported(ReportTest):
    """Datagrams of QUIC, to the address of the service and to a cookie address."""

    def runTest(self) -> None:
        for vip in (self.make_quic(1, 7, QUIC6, HASH, 16, 700), self.make_quic(1, 8, QUIC4, HASH, 32, 800)):
            server = vip.servers[0]
            version = vip.at.address.version
            tunnel = self.tunnel_to(server, GENEVE, version)
            self.put_behind(server, tunnel)
            limit = 1500 - tunnel.overhead
            room = limit - (28 if version == 4 else 48)
            talk = self.new_conversation(vip)
            self.goes_into(tunnel, server, talk.datagram(long(self.foreign_cid(), size=room)), talk, "ASSIGNED_HASH")
            talk = self.new_conversation(vip)
            self.reports(talk.datagram(long(self.foreign_cid(), size=room + 1)), limit, vip.at, 8)
            if vip.prefix is not None:
                at = cookie_address(vip, KEY.static6(server.sid))
                self.reports(talk.datagram(short(b"\x11" * 8, size=room + 1), at), limit, at, 8)


class UnquotableTooLongPacketsDrop(RemoteTest):
    """Packets with IPv4 options or IPv6 extension headers are dropped if they do not fit."""

    def runTest(self) -> None:
        for id, at in ((1, VIP4), (2, VIP6)):
            vip = self.make_vip(1, id, at, policy=HASH, base=id, first_sid=100 + id)
            server = vip.servers[0]
            self.put_behind(server, self.tunnel_to(server, VXLAN, 4))
            flow = self.new_flow(vip)
            if at is VIP4:
                frame = flow.up("A", payload=bytes(1430), between=b"\x01" * 4)
            else:
                frame = with_extension(flow.up("A", payload=bytes(1430)), 60)
            self.drops(1, frame, "TUNNEL_TOO_LONG")


class QuicPassesTunnels(RemoteTest):
    """First flights, packets to cookie addresses and answers with loads."""

    def runTest(self) -> None:
        for kind in KINDS:
            vip = self.make_quic(
                1, 7 + kind, Endpoint(QUIC6.address + kind, 443), HASH, 16 * kind, 700 + kind, prefix=PREFIX + kind
            )
            server = vip.servers[0]
            tunnel = self.tunnel_to(server, kind, 6)
            self.put_behind(server, tunnel)
            talk = self.new_conversation(vip)
            self.goes_into(tunnel, server, talk.datagram(long(self.foreign_cid())), talk, "ASSIGNED_HASH")
            static = KEY.static6(server.sid)
            source = own_address(server, KEY.dynamic6(server.sid, 5, 6, 7))
            self.comes_out_of(tunnel, vip, talk.response(source, port=UNDERLAY_PORT), "INSIGHT")
            # A client that migrated to the cookie address: the server sees its own /64.
            at = cookie_address(vip, static)
            frame = talk.datagram(short(b"\x11" * 8), at)
            moved = Flow(talk.client, at)
            inner = Frame(frame).rewritten(dst=(own_address(server, static).address, server.dip.port))
            self.passes(1, frame, UNDERLAY_PORT, tunnel.out(inner, moved), "RETRIEVED_ADDRESS")


class ForgedSourcesDrop(Tunnelled):
    """A tunnel carries only packets of the servers behind its endpoint, and these come in no other way."""

    def runTest(self) -> None:
        neighbor = self.make_vip(1, 60, Endpoint(VIP4.address + 60, 80), policy=HASH, base=60, first_sid=90).servers[0]
        neighbor6 = self.make_vip(1, 61, Endpoint(VIP6.address + 61, 80), policy=HASH, base=61, first_sid=91).servers[0]
        last: dict[int, Server] = {}
        for vip, server, tunnel in self.cases():
            self.put_behind(server, tunnel)
            flow = self.new_flow(vip)
            version = vip.at.address.version
            whole = flow.down(server.dip, "A", stamped(1, 2), port=UNDERLAY_PORT)
            back = tunnel.back()
            self.comes_out_of(tunnel, vip, whole, "NO_INSIGHT")
            # Without the tunnel, on the side of the servers and on that of the clients.
            for port in (SERVER_PORT, UNDERLAY_PORT):
                self.drops(port, flow.down(server.dip, "A", stamped(1, 2), port=port), "REMOTE_SERVER_SOURCE")
            self.drops(1, flow.down(server.dip, "A", stamped(1, 2), port=1), "SPOOFED_SOURCE")
            # From a client's port, to both ends.
            self.drops(1, back.into(whole, 1), "TUNNEL_FORGED")
            self.drops(1, tunnel.into(whole, 1), "TUNNEL_FORGED")
            # From an address that is not an endpoint.
            other = ServerTunnel(tunnel.kind, tunnel.dst + 0x100, tunnel.src, tunnel.id)
            self.drops(UNDERLAY_PORT, other.into(whole), "TUNNEL_PEER")
            # Other sources in the tunnel: local servers, other remote ones, clients, the VIP, another port of the server.
            local = neighbor if version == 4 else neighbor6
            sources = [local.dip, Endpoint(flow.client.address, 80), vip.at, Endpoint(server.dip.address, 22)]
            sources += [other.dip for v, other in last.items() if v == version]
            for source in sources:
                forged = flow.down(source, "A", stamped(1, 2), port=UNDERLAY_PORT)
                self.drops(UNDERLAY_PORT, back.into(forged), "REMOTE_SERVER_SOURCE")
            # A client's packet to a VIP.
            self.drops(UNDERLAY_PORT, back.into(flow.up("S", linux_syn(1), port=UNDERLAY_PORT)), "REMOTE_SERVER_SOURCE")
            last[version] = server
        ping4 = bytes(Ether() / Ip4(src="10.1.0.16", dst="198.51.100.7") / ICMP())
        ping6 = bytes(Ether() / IPv6(src="fd12:3456:a::10", dst="2001:db8:1::7") / ICMPv6EchoRequest())
        for ping in (ping4, ping6):
            self.drops(UNDERLAY_PORT, back.into(ping), "REMOTE_SERVER_SOURCE")


class SharedEndpoint(RemoteTest):
    """Two servers behind one endpoint; each comes through its own kind of tunnel or that of the other."""

    def runTest(self) -> None:
        vip = self.make_vip(2, policy=HASH)
        first, second = vip.servers
        tunnel = self.tunnel_to(first, VXLAN, 4)
        self.put_behind(first, tunnel)
        dip = {"dip": int(second.dip.address), "port": second.dip.port, "max_mss": 1410}
        self.site.modify(self.site.entry("FrontageIngress.cclb4.server.server4", {"sid": second.sid}, "to_remote_server4", **dip))
        # The set of the first server holds both.
        match = {"source_set": first.sid + 1, "encapsulation": GRE, "tunnel_id": 5}
        self.site.insert(
            [
                self.table(
                    "remote_servers.source", {"sid": second.sid}, "return_by_tunnel", source_set=first.sid + 1, max_mss=1410
                ),
                self.table("tunnel.server_tunnel.tunnel", match, "NoAction"),
            ]
        )
        other = ServerTunnel(GRE, tunnel.src, tunnel.dst, 5)
        for server in (first, second):
            flow = self.new_flow(vip)
            for way in (tunnel, other):
                self.comes_out_of(way, vip, flow.down(server.dip, "A", stamped(1, 2), port=UNDERLAY_PORT))


class RoutedAnswers(Tunnelled):
    """A server whose answers are routed sends without a tunnel, and only without one."""

    def runTest(self) -> None:
        for vip, server, tunnel in self.cases():
            mss = self.put_behind(server, tunnel, routed=True)
            flow = self.new_flow(vip)
            dynamic = dynamic_tsval(9, 1, 2, 3)
            static = KEY.static_tsval(server.sid, flow.hash, 9)
            back, clamped = (flow.down(server.dip, "SA", with_mss(linux_syn(dynamic, 7), n), ck=1) for n in (8960, mss))
            clamped = Frame(clamped).rewritten(
                (PORT_MAC[1], NEIGHBOR_MAC[1]), src=(vip.at.address, vip.at.port), tsval=static, ck=0
            )
            self.passes(SERVER_PORT, back, 1, clamped, "INSIGHT")
            self.goes_into(tunnel, server, flow.up("A", stamped(8, static)), flow, "RETRIEVED_COOKIE")
            self.site.insert(self.peer_entries(tunnel, server.sid + 1))
            self.drops(UNDERLAY_PORT, tunnel.back().into(flow.down(server.dip, port=UNDERLAY_PORT)), "REMOTE_SERVER_SOURCE")


class RealServersSendForRemoteServers(RemoteTest):
    """A real server's port is proof enough: its packets take no tunnel."""

    def runTest(self) -> None:
        vip = self.make_quic(1, 8, QUIC4, HASH, 32, 800)
        server = vip.servers[0]
        self.put_behind(server, self.tunnel_to(server, VXLAN, 4))
        port, role = 5, 4
        self.site.insert(
            [
                self.table("ports.port", {"ingress_port": port}, "set_port", role=role, mac=PORT_MAC[port]),
                self.table("real_servers.sender", {"ingress_port": port, "sid": server.sid}, "allow_sender", from_real_server=1),
            ]
        )
        talk = self.new_conversation(vip)
        self.comes_from(vip.at, talk.response(server.dip, port=port), "REAL_SERVER", port=port)


class WrongIdsDrop(RemoteTest):
    """Another VNI or key than the server's, another kind of tunnel, and a key where there should be none."""

    def runTest(self) -> None:
        vip = self.make_vip(1, policy=HASH)
        server = vip.servers[0]
        whole = self.new_flow(vip).down(server.dip, port=UNDERLAY_PORT)
        tunnels = [self.tunnel_to(Server(number, server.dip), kind, 6) for number, kind in enumerate(KINDS, 1)]
        for number, tunnel in enumerate(tunnels, 1):
            self.site.insert(self.peer_entries(tunnel, number))
        for tunnel in tunnels:
            back = tunnel.back()
            if tunnel.kind in (VXLAN, GENEVE, GRE):
                for wrong in (0, 1, back.id ^ 1, back.id ^ 0x800000):
                    self.drops(UNDERLAY_PORT, ServerTunnel(back.kind, back.src, back.dst, wrong).into(whole), "TUNNEL_ORIGIN")
            for kind in KINDS:
                if kind != tunnel.kind:
                    wrong_kind = ServerTunnel(kind, back.src, back.dst, back.id & 0xFFFFFF)
                    self.drops(UNDERLAY_PORT, wrong_kind.into(whole), "TUNNEL_ORIGIN")


class WrongHeadersDrop(RemoteTest):
    """Headers other than those of the kinds, wrong lengths, fragments, and tunnels in tunnels."""

    def runTest(self) -> None:
        vip = self.make_vip(1, policy=HASH)
        server = vip.servers[0]
        whole = self.new_flow(vip).down(server.dip, "A", stamped(1, 2), b"x" * 40, port=UNDERLAY_PORT)
        for number, kind in enumerate(KINDS, 1):
            tunnel = self.tunnel_to(Server(number, server.dip), kind, 6)
            self.site.insert(self.peer_entries(tunnel, server.sid + 1))
            sent = tunnel.back().into(whole)
            wrong = []
            if kind == GENEVE:
                # Version, options, control and critical bits, the protocol.
                wrong += [overwritten(sent, 62, value) for value in (0x40, 0x80, 0x01, 0x3F)]
                wrong += [overwritten(sent, 63, value) for value in (0x80, 0x40)]
                wrong += [overwritten(sent, 64, 0x08, 0x00), overwritten(sent, 64, 0x86, 0xDD)]
            elif kind == VXLAN:
                wrong.append(overwritten(sent, 62, 0))
            elif kind == GRE:
                wrong += [overwritten(sent, 54, value >> 8, value & 255) for value in (0x2001, 0xA000, 0x3000, 0x8000, 1)]
            if kind in (GENEVE, VXLAN):
                wrong += [overwritten(sent, 58, n >> 8, n & 255) for n in (0, 8, 29, len(sent) - 54 + 1, 0xFFFF)]
            wrong += [with_extension(sent, 60), with_extension(sent, 44)]
            for frame in wrong:
                self.drops(UNDERLAY_PORT, frame, "TUNNEL_HEADER")
            for end in range(54, len(sent), 3):
                short_outer = overwritten(sent[:end], 18, end - 54 >> 8, end - 54 & 255)
                for cut in (sent[:end], short_outer):
                    self.assertIsNotNone(self.fate(UNDERLAY_PORT, cut).reason, f"kind {kind} cut at {end}")
            nested = self.tunnel_to(Server(number, server.dip), kind, 6).back().into(sent)
            self.drops(UNDERLAY_PORT, nested, "TUNNEL_NESTED")
            inner = tunnel.back().into(overwritten(whole, 24, 0, 0))
            self.drops(UNDERLAY_PORT, inner, "IPV4_CHECKSUM")


class ReservedBitsOfGeneveAreIgnored(RemoteTest):
    """RFC 8926, 3.4: receivers ignore reserved bits."""

    def runTest(self) -> None:
        vip = self.make_vip(1, policy=HASH)
        server = vip.servers[0]
        tunnel = self.tunnel_to(server, GENEVE, 6)
        self.put_behind(server, tunnel)
        flow = self.new_flow(vip)
        back = flow.down(server.dip, "A", stamped(1, 2), port=UNDERLAY_PORT)
        sent = overwritten(overwritten(tunnel.back().into(back), 63, 0x3F), 69, 0xFF)
        expected = Frame(back).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1]), src=(vip.at.address, vip.at.port))
        self.passes(UNDERLAY_PORT, sent, 1, expected)


class ZeroAndOtherUdpChecksums(RemoteTest):
    """The checksum of the outer UDP header is ignored: the inner packet has its own (RFC 6935)."""

    def runTest(self) -> None:
        vip = self.make_vip(1, policy=HASH)
        server = vip.servers[0]
        for kind, outer in ((VXLAN, 4), (GENEVE, 6)):
            tunnel = self.tunnel_to(Server(kind, server.dip), kind, outer)
            self.site.insert(self.peer_entries(tunnel, 1))
            if kind == VXLAN:
                self.site.insert(
                    [self.table("remote_servers.source", {"sid": server.sid}, "return_by_tunnel", source_set=1, max_mss=1400)]
                )
            flow = self.new_flow(vip)
            back = flow.down(server.dip, "A", stamped(1, 2), port=UNDERLAY_PORT)
            at = 40 if outer == 4 else 60
            expected = Frame(back).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1]), src=(vip.at.address, vip.at.port))
            self.passes(UNDERLAY_PORT, overwritten(tunnel.back().into(back), at, 0x12, 0x34), 1, expected)


class MissingTunnelsDrop(RemoteTest):
    """A remote server whose tunnel is not installed, and an expired hop limit inside."""

    def runTest(self) -> None:
        vip = self.make_vip(1, policy=HASH)
        server = vip.servers[0]
        dip = {"dip": int(server.dip.address), "port": server.dip.port, "max_mss": 1400}
        self.site.modify(self.site.entry("FrontageIngress.cclb4.server.server4", {"sid": server.sid}, "to_remote_server4", **dip))
        flow = self.new_flow(vip)
        self.drops(1, flow.up("S", linux_syn(1)), "NO_TUNNEL")
        tunnel = self.tunnel_to(server, IP_IN_IP, 4)
        self.site.insert(self.peer_entries(tunnel, 5))
        self.site.insert([self.table("remote_servers.source", {"sid": server.sid}, "return_by_tunnel", source_set=5, max_mss=1400)])
        worn = flow.down(server.dip, "A", stamped(1, 2), port=UNDERLAY_PORT, ttl=1)
        self.drops(UNDERLAY_PORT, tunnel.back().into(worn), "TTL")
        # To the local endpoint, but not a tunnel.
        for protocol in (50, 99):
            head = Ether(src=NEIGHBOR_MAC[UNDERLAY_PORT], dst=PORT_MAC[UNDERLAY_PORT])
            frame = bytes(head / Ip4(src=str(tunnel.dst), dst=str(ENDS[4]), proto=protocol) / Raw(bytes(40)))
            self.drops(UNDERLAY_PORT, frame, "VIP_NO_SERVICE")


class RefusedPacketsReturnThroughTheTunnel(RemoteTest):
    """A remote server that does not know a connection sends its packet back, and the switch sends it to the next server."""

    def runTest(self) -> None:
        vip = self.make_vip(2, policy=HASH)
        flow = self.new_flow(vip)
        slot = flow.hash & (vip.maglev_size - 1)
        one = vip.servers[slot]
        two = vip.servers[1 - slot]
        self.site.set_others(vip, slot, two.sid)
        to_one, to_two = self.tunnel_to(one, VXLAN, 4), self.tunnel_to(two, GENEVE, 6)
        self.put_behind(one, to_one)
        self.put_behind(two, to_two)
        frame = flow.up("A")
        marked = to_server(frame, one, second_hop=1)
        self.passes(1, frame, UNDERLAY_PORT, to_one.out(marked, flow), "HASHED_NO_COOKIE")
        refused = Frame(marked).refused()
        expected = Frame(to_server(frame, two, second_hop=0)).rewritten()
        self.passes(UNDERLAY_PORT, to_one.back().into(refused), UNDERLAY_PORT, to_two.out(expected, flow), "SECOND_HOP")
        # Not in the tunnel of another server.
        self.drops(UNDERLAY_PORT, to_two.back().into(refused), "REMOTE_SERVER_SOURCE")

# SPDX-License-Identifier: Apache-2.0
"""Steering of TCP services: the mapping chooses the site of a new connection, and the cookie that of all later segments."""

from frontage_ptf.balancer import TCP_CONTROL, VIP4, VIP6
from frontage_ptf.icmp import KINDS, ROUTER, Kind, error, forwarded, packet_of
from frontage_ptf.packets import MSS, Flow, linux_syn, stamped
from frontage_ptf.site import HASH, Server, Vip, port_of
from frontage_ptf.switch import KEY, to_server
from frontage_ptf.tunnel import OWN, SITE_PORT, TunnelTest

SERVICE = 77
DEPLOYED = 8
DATA = bytes(range(200)) * 4


class TcpServiceTest(TunnelTest):
    """Service addresses of TCP over IPv4 and IPv6, which have the same deployment."""

    def setUp(self) -> None:
        super().setUp()
        self.skip_without(TCP_CONTROL)
        self.site.install_key(KEY)
        self.site.activate_key(KEY)
        self.reach(6)
        self.vips = [self.make_vip(4, 1, VIP4, HASH), self.make_vip(4, 2, VIP6, HASH, base=4, first_sid=200)]
        for vip in self.vips:
            self.site.insert([self.entry("steering.service", {"vip_id": vip.id}, "set_service", local_site=OWN, service=SERVICE)])
        self.deploy(DEPLOYED, SERVICE)
        self.set_sid_ranges()

    def cookie_of(self, flow: Flow, sid: int) -> bytes:
        """Return the options of a segment whose client echoes the cookie of a server of any site."""
        return stamped(8, KEY.static_tsval(sid, flow.hash, 1))

    def steered(self, site: int, flow: Flow, frame: bytes, outcome: str) -> None:
        """Check that the client's packet leaves for a site, unchanged."""
        self.leaves_in(self.to_site(site), frame, flow, frame, 1, outcome)

    def hashed_tcp(self, vip: Vip, flow: Flow) -> Server:
        return vip.servers[flow.hash % vip.maglev_size % len(vip.servers)]


class SynGoesToMappedSite(TcpServiceTest):
    """A SYN goes to the site of the client's region, and to a local server if the mapping names this site."""

    def runTest(self) -> None:
        self.map(DEPLOYED, 3)
        self.map(DEPLOYED, 4, 10)
        self.map(DEPLOYED, None, 11)
        self.site.insert(
            self.entry(f"region.client{version}", {"src": prefix}, "set_region", region=region)
            for version, prefix, region in (
                (4, "198.51.100.0/25", 10),
                (4, "198.51.100.128/26", 11),
                (6, "2001:db8:1::/65", 10),
                (6, "2001:db8:1:0:8000::/66", 11),
            )
        )
        for vip in self.vips:
            ipv6 = vip.at.address.version == 6
            seen: set[int | None] = set()
            while len(seen) < 3:
                flow = self.new_flow(vip)
                high = int(flow.client.address) >> (62 if ipv6 else 6) & 3
                site = {0: 4, 1: 4, 2: None, 3: 3}[high]
                seen.add(site)
                for options in (linux_syn(7), MSS):
                    frame = flow.up("S", options)
                    if site is not None:
                        self.steered(site, flow, frame, "STEERED_SITE")
                    elif options == MSS:
                        self.goes_to(self.hashed_tcp(vip, flow), frame, "ASSIGNED_FALLBACK")
                    else:
                        self.goes_to(self.hashed_tcp(vip, flow), frame, "ASSIGNED_HASH")


class CookieGoesToItsSite(TcpServiceTest):
    """Segments of an open connection go to the site of their server, whatever the mapping says since."""

    def runTest(self) -> None:
        self.map(DEPLOYED, 3)
        for vip in self.vips:
            for flags in ("A", "PA", "FA", "R", "RA"):
                flow = self.new_flow(vip)
                self.steered(2, flow, flow.up(flags, self.cookie_of(flow, 2345), b"data"), "STEERED_COOKIE")
                server = vip.servers[1]
                self.goes_to(server, flow.up(flags, self.cookie_of(flow, server.sid), b"data"), "RETRIEVED_COOKIE")


class SegmentWithoutCookieFollowsTheMapping(TcpServiceTest):
    """A client without timestamps is steered by its address alone, with all of its segments."""

    def runTest(self) -> None:
        self.map(DEPLOYED, 3)
        self.map(DEPLOYED, 4, 10)
        self.site.insert([self.entry("region.client4", {"src": "198.51.100.0/25"}, "set_region", region=10)])
        seen: set[int] = set()
        while len(seen) < 2:
            flow = self.new_flow(self.vips[0])
            site = 3 if int(flow.client.address) & 128 else 4
            seen.add(site)
            for flags in ("S", "A", "PA", "FA", "R"):
                self.steered(site, flow, flow.up(flags, MSS if flags == "S" else b""), "STEERED_SITE")
        flow = self.new_flow(self.vips[1])
        foreign = next(code for code in range(1 << 16) if KEY.open(code, flow.hash) is None)
        self.steered(3, flow, flow.up("A", stamped(8, foreign)), "STEERED_SITE")


class SegmentFromASiteReachesAServer(TcpServiceTest):
    """A segment from a tunnel is never steered again. It reaches a server without a tunnel, and so does the response."""

    def runTest(self) -> None:
        self.map(DEPLOYED, 3)
        for vip in self.vips:
            flow = self.new_flow(vip)
            server = self.hashed_tcp(vip, flow)
            syn = flow.up("S", linux_syn(7))
            self.arrives(server, syn, "ASSIGNED_HASH")
            other = vip.servers[2]
            self.arrives(other, flow.up("PA", self.echoed(flow, other), b"data"), "RETRIEVED_COOKIE")
            self.comes_back(vip, flow.down(other.dip, "A", stamped(5, 8), DATA), "NO_INSIGHT")

    def arrives(self, server: Server, frame: bytes, outcome: str) -> None:
        """Check that a client's packet that entered at site 2 reaches the server."""
        sent = self.from_site(2, 2).into(frame)
        self.passes(SITE_PORT, sent, port_of(server.dip.address), to_server(frame, server), outcome)


class OtherTcpVipsAreNotSteered(TcpServiceTest):
    """A VIP that is not a service address is not steered, whatever it carries, and is not reached through a tunnel."""

    def runTest(self) -> None:
        self.map(DEPLOYED, 3)
        for id, at in ((3, VIP4), (4, VIP6)):
            vip = self.make_vip(2, id, type(at)(at.address + 9, at.port), HASH, base=8 * id, first_sid=100 * id)
            flow = self.new_flow(vip)
            self.goes_to(self.hashed_tcp(vip, flow), flow.up("S", linux_syn(7)), "ASSIGNED_HASH")
            self.goes_to(self.hashed_tcp(vip, flow), flow.up("A", self.cookie_of(flow, 2345)), "HASHED_BAD_COOKIE")
            self.drops(SITE_PORT, self.from_site(2, 2).into(flow.up("S", linux_syn(7))), "TUNNEL_INNER")


class ErrorGoesToTheSiteOfItsServer(TcpServiceTest):
    """An ICMP error goes to the site whose server sent the quoted segment, and there to the server."""

    def runTest(self) -> None:
        if self.target == "tna":
            self.skipTest("the programs for Tofino do not deliver ICMP errors")
        self.map(DEPLOYED, 3)
        for vip in self.vips:
            router = ROUTER[vip.at.address.version]
            for kind in KINDS:
                with self.subTest(kind.name):
                    flow = self.new_flow(vip)
                    sent = flow.down(vip.at, "A", stamped(KEY.static_tsval(2345, flow.hash, 1), 8), DATA)
                    self.steered(2, flow, error(kind, router, vip.at.address, packet_of(sent)), "STEERED_COOKIE")
                    self.arrives(vip, vip.servers[3], flow, kind)
            flow = self.new_flow(vip)
            unknown = error(KINDS[0], router, vip.at.address, packet_of(flow.down(vip.at, "A", b"", DATA)))
            self.assertEqual(port_of(vip.servers[0].dip.address), self.fate(1, unknown).port)

    def arrives(self, vip: Vip, server: Server, flow: Flow, kind: Kind) -> None:
        """Check that an error that entered at site 2 reaches the server, with a quote of the server's own segment."""
        router = ROUTER[vip.at.address.version]
        options = stamped(KEY.static_tsval(server.sid, flow.hash, 1), 8)
        about = [packet_of(flow.down(source, "A", options, DATA)) for source in (vip.at, server.dip)]
        sent = self.from_site(2, 2).into(error(kind, router, vip.at.address, about[0]))
        expected = error(kind, router, server.dip.address, about[1])
        self.passes(SITE_PORT, sent, port_of(server.dip.address), forwarded(expected), "ERROR_RETRIEVED")

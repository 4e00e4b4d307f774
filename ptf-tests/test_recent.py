# SPDX-License-Identifier: Apache-2.0
"""Packets that answer a server's packet without a cookie: a client's RST without timestamps finds the server that has just
sent."""

from frontage_ptf.balancer import VIP4, VIP6, BalancerTest
from frontage_ptf.packets import MSS, Endpoint, Flow, random_client, stamped
from frontage_ptf.site import CHEETAH_LL, Server, Vip
from frontage_ptf.switch import KEY


class RecentTest(BalancerTest):
    """VIPs over IPv4 and IPv6."""

    control = "cclb4.recent"

    def setUp(self) -> None:
        super().setUp()
        self.vips = [self.make_vip(4, 1, VIP4), self.make_vip(4, 2, VIP6, base=4, first_sid=200)]

    def connection(self, vip: Vip) -> tuple[Flow, Server, Server]:
        """Return a connection, its server, and the server of its hash."""
        flow = self.new_flow(vip)
        return flow, vip.servers[(flow.hash & 3) ^ 1], vip.servers[flow.hash & 3]

    def sends(self, vip: Vip, flow: Flow, server: Server) -> None:
        """Send a segment of the server to its client."""
        tsval = KEY.static_tsval(server.sid, flow.hash, 1)
        self.comes_back(vip, flow.down(server.dip, "PA", stamped(tsval, 7), b"data"), "NO_INSIGHT")


class ResetFindsTheServerThatHasJustSent(RecentTest):
    """An RST without timestamps answers a segment, whose server gets it."""

    def runTest(self) -> None:
        for vip in self.vips:
            for _ in range(8):
                flow, server, hashed = self.connection(vip)
                self.goes_to(hashed, flow.up("R"), "HASHED_NO_COOKIE")
                self.sends(vip, flow, server)
                for _ in range(3):
                    self.goes_to(server, flow.up("R"), "RETRIEVED_RECENT")
                self.goes_to(server, flow.up("RA", MSS), "RETRIEVED_RECENT")


class OnlyResetsWithoutAnotherServer(RecentTest):
    """Cookie and connection table come first, and packets other than RSTs go by the hash."""

    def runTest(self) -> None:
        for vip in self.vips:
            flow, server, hashed = self.connection(vip)
            self.sends(vip, flow, server)
            self.goes_to(hashed, flow.up("A"), "HASHED_NO_COOKIE")
            self.goes_to(hashed, flow.up("FA"), "HASHED_NO_COOKIE")
            other = vip.servers[(flow.hash & 3) ^ 2]
            self.goes_to(other, flow.up("R", self.echoed(flow, other)), "RETRIEVED_COOKIE")

            flow, server, hashed = self.connection(vip)
            self.goes_to(hashed, flow.up("S", MSS), "ASSIGNED_FALLBACK")
            self.sends(vip, flow, server)
            self.goes_to(hashed, flow.up("R"), "RETRIEVED_TABLE")


class AnotherConnectionOverwrites(RecentTest):
    """The last sender with an index counts. The RST of another connection goes by the hash until its server sends again, as
    for a retransmission."""

    def runTest(self) -> None:
        vip = self.vips[0]
        one, other = self.colliding_pair(vip)
        server, hashed = vip.servers[(one.hash & 3) ^ 1], vip.servers[one.hash & 3]
        self.sends(vip, one, server)
        self.goes_to(server, one.up("R"), "RETRIEVED_RECENT")
        self.sends(vip, other, vip.servers[0])
        self.goes_to(hashed, one.up("R"), "HASHED_NO_COOKIE")
        self.goes_to(vip.servers[0], other.up("R"), "RETRIEVED_RECENT")
        self.sends(vip, one, server)
        self.goes_to(server, one.up("R"), "RETRIEVED_RECENT")

    def colliding_pair(self, vip: Vip) -> tuple[Flow, Flow]:
        """Return two connections with the same index."""
        seen: dict[int, Flow] = {}
        while True:
            flow = Flow(random_client(self.rng, False), vip.at)
            other = seen.setdefault(flow.table_index, flow)
            if other != flow and other.hash != flow.hash:
                return other, flow


class ServerIdZero(RecentTest):
    """An empty entry is not one of the server with SID 0, which is valid."""

    def runTest(self) -> None:
        vip = self.make_vip(2, 3, Endpoint(VIP4.address, 8080), base=8, first_sid=0)
        flow = self.new_flow(vip)
        self.site.set_maglev(vip, [vip.servers[1].sid] * 2)
        self.goes_to(vip.servers[1], flow.up("R"), "HASHED_NO_COOKIE")
        self.sends(vip, flow, vip.servers[0])
        self.goes_to(vip.servers[0], flow.up("R"), "RETRIEVED_RECENT")


class DrainingAndRemovedServers(RecentTest):
    """A draining server gets the RST. One that left the VIP does not."""

    def runTest(self) -> None:
        vip = self.vips[0]
        flow, server, hashed = self.connection(vip)
        self.sends(vip, flow, server)
        server.active = False
        self.site.update_server(vip, server)
        self.goes_to(server, flow.up("R"), "RETRIEVED_RECENT")
        self.site.remove_server(vip, server)
        self.goes_to(hashed, flow.up("R"), "HASHED_NO_COOKIE")


class ResetsAreNotCountedAsEnds(RecentTest):
    """Under cheetah-ll, such RSTs do not subtract: a client sends one for each segment that it rejects."""

    def runTest(self) -> None:
        vip = self.vips[0]
        vip.policy = CHEETAH_LL
        self.site.update_policy(vip)
        self.seed(vip, *vip.servers)
        flow, server = self.begin(vip, "ASSIGNED_LL")
        self.sends(vip, flow, server)
        self.goes_to(server, flow.up("R"), "RETRIEVED_RECENT")
        self.goes_to(server, flow.up("R"), "RETRIEVED_RECENT")
        if self.is_softswitch:
            self.wait_for_leaf(server.slot, self.leaves.at[server.slot])

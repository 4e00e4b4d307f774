# SPDX-License-Identifier: Apache-2.0
"""The switch counts the handshakes that clients begin with each server, and its answers (docs/health.md)."""

from frontage_ptf.packets import Flow, linux_syn, stamped
from frontage_ptf.quic import long, short
from frontage_ptf.site import CCLB4, INGRESS, Server, Vip
from frontage_ptf.switch import KEY
from test_checker import CheckerTest


class OpeningsTest(CheckerTest):
    """VIPs with a checker."""

    control = "openings"

    def openings(self, server: Server) -> tuple[int, int]:
        """Return the handshakes that clients have begun with a server, and the answers."""
        begun, answered, _ = self.counts(server)
        return begun, answered

    def reports(self, server: Server) -> int:
        """Return the packets of a server with a report of its loads."""
        return self.counts(server)[2]

    def counts(self, server: Server) -> tuple[int, ...]:
        found = self.client.counter(f"{INGRESS}openings.packets.packets")
        return tuple(found.get(4 * server.sid + kind, 0) for kind in range(3))


class TcpHandshakesCount(OpeningsTest):
    """SYNs and SYN-ACKs count, also in a second pass, and nothing else does."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            server = vip.servers[0]
            self.site.set_maglev(vip, [server.sid] * vip.maglev_size)
            flow = self.new_flow(vip)
            self.goes_to(server, flow.up("S", linux_syn(7)), "ASSIGNED_HASH")
            self.exchange(vip, flow, server)
        self.restart()
        self.add_class(0, 0.5)
        for vip in self.tcp_vips(CCLB4):
            self.seed(vip, *vip.servers)
            flow, server = self.begin(vip)  # the SYN passes ingress twice
            self.exchange(vip, flow, server)

    def exchange(self, vip: Vip, flow: Flow, server: Server) -> None:
        """Continue the connection after its SYN."""
        self.assertEqual((1, 0), self.openings(server))
        self.comes_back(vip, flow.down(server.dip, "SA"), "NO_INSIGHT")
        self.assertEqual((1, 1), self.openings(server))
        for frame in (flow.up("A", stamped(8, 5)), flow.up("PA", stamped(9, 5), payload=b"GET"), flow.up("R")):
            self.fate(1, frame)
        self.comes_back(vip, flow.down(server.dip, "PA", payload=b"200"), "NO_INSIGHT")
        self.assertEqual((1, 1), self.openings(server))


class ReportsCount(OpeningsTest):
    """Packets of a server with its loads count, and no others."""

    def runTest(self) -> None:
        for vip in self.tcp_vips(CCLB4):
            server, other = vip.servers[:2]
            for count in (1, 2):
                self.report(vip, server, 3, 4)
                self.assertEqual((count, 0), (self.reports(server), self.reports(other)))
            flow = self.new_flow(vip)
            self.comes_back(vip, flow.down(server.dip, "PA", payload=b"200"), "NO_INSIGHT")
            self.assertEqual(2, self.reports(server))


class ChecksDoNotCount(OpeningsTest):
    """Neither health checks nor their answers count, so they do not hide a server that answers no client."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            for server in vip.servers:
                check = self.check(vip, server.sid)
                self.goes_to(server, check.up("S", linux_syn(7)), "CHECK")
                self.comes_back(vip, check.down(server.dip, "SA"), "NO_INSIGHT")
                self.assertEqual((0, 0), self.openings(server))
        for vip in self.quic_vips():
            for server in vip.servers:
                self.goes_to(server, self.check(vip, server.sid).datagram(long(self.foreign_cid())), "CHECK")
                self.assertEqual((0, 0), self.openings(server))


class QuicHandshakesCount(OpeningsTest):
    """Long headers count, and short ones do not."""

    def runTest(self) -> None:
        for vip in self.quic_vips():
            server = vip.servers[0]
            self.site.set_maglev(vip, [server.sid] * vip.maglev_size)
            talk = self.new_conversation(vip)
            self.goes_to(server, talk.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
            self.assertEqual((1, 0), self.openings(server))
            self.comes_back(vip, talk.response(server.dip, long(b"client", size=80)), "NO_INSIGHT")
            self.assertEqual((1, 1), self.openings(server))
            self.goes_to(server, talk.datagram(short(KEY.cid(server.sid, 3))), "RETRIEVED_CID")
            self.comes_back(vip, talk.response(server.dip, short(b"client")), "NO_INSIGHT")
            self.assertEqual((1, 1), self.openings(server))

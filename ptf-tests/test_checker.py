# SPDX-License-Identifier: Apache-2.0
"""Health checks reach the server that their source port names, at the address of the service (docs/health.md)."""

from ipaddress import ip_address

import finsy as fy

from frontage_ptf.frame import IP
from frontage_ptf.packets import Endpoint, Flow, linux_syn, stamped
from frontage_ptf.quic import QUIC4, QUIC6, Conversation, QuicTest, long, short
from frontage_ptf.site import CCLB4, CHEETAH_LL, CHEETAH_RR, HASH, INGRESS, Vip
from frontage_ptf.switch import KEY

CHECKER: dict[int, IP] = {4: ip_address("198.51.100.250"), 6: ip_address("2001:db8:1::c4ec")}
CHECKER_PORT, OTHER_CLIENT_PORT, SERVER_PORT = 1, 2, 3
UNUSED_SID = 4095


class CheckerTest(QuicTest):
    """A checker with an address of each IP version, on port 1."""

    control = "checker"

    def _begin(self) -> None:
        super()._begin()
        for version, address in CHECKER.items():
            match = {"ingress_port": CHECKER_PORT, "src": int(address)}
            self.site.insert(
                [
                    self.entry(f"source{version}", match),
                    self.entry(f"destination{version}", {"dst": int(address)}),
                ]
            )

    def entry(self, table: str, match: dict[str, int]) -> fy.P4TableEntry:
        return self.site.entry(f"{INGRESS}checker.{table}", match, "is_check")

    def check(self, vip: Vip, sid: int, turn: int = 0) -> Conversation:
        """Return the conversation of a check of the server `sid`."""
        port = 0x8000 | turn << 12 | sid
        return Conversation(Endpoint(CHECKER[vip.at.address.version], port), vip.at)

    def quic_vips(self) -> list[Vip]:
        return [self.make_quic(3, 7, QUIC6, HASH, 48, 700), self.make_quic(3, 8, QUIC4, HASH, 64, 800)]

    def tcp_claims(self) -> int:
        return sum(self.client.counter("FrontageIngress.cclb4.fallback.claims.claims").values())


class TcpCheckReachesItsServer(CheckerTest):
    """Under each policy, every segment of a check reaches the server that the source port names."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        for policy in (HASH, CHEETAH_RR, CHEETAH_LL, CCLB4):
            for vip in self.tcp_vips(policy):
                for turn, server in enumerate(vip.servers):
                    for flow in (self.check(vip, server.sid, turn), self.check(vip, server.sid, 7)):
                        self.goes_to(server, flow.up("S", linux_syn(7)), "CHECK")
                        self.goes_to(server, flow.up("A", stamped(8, 5)), "CHECK")
                        self.goes_to(server, flow.up("PA", payload=b"GET / HTTP/1.1\r\n"), "CHECK")
                        self.goes_to(server, flow.up("FA", stamped(9, 5)), "CHECK")
                        self.goes_to(server, flow.up("R"), "CHECK")
            self.restart()
            self.add_class(0, 0.5)


class QuicCheckReachesItsServer(CheckerTest):
    """Every datagram of a check reaches the server that the source port names, whatever its connection id says."""

    def runTest(self) -> None:
        for vip in self.quic_vips():
            other = vip.servers[0]
            for turn, server in enumerate(vip.servers):
                talk = self.check(vip, server.sid, turn)
                self.goes_to(server, talk.datagram(long(self.foreign_cid())), "CHECK")
                self.goes_to(server, talk.datagram(long(self.foreign_cid(), first=0xE0, size=80)), "CHECK")
                self.goes_to(server, talk.datagram(short(KEY.cid(server.sid, 3))), "CHECK")
                self.goes_to(server, talk.datagram(short(KEY.cid(other.sid, 4))), "CHECK")
                self.goes_to(server, talk.datagram(short(self.foreign_cid())), "CHECK")
        self.assertEqual({}, self.claims(), "checks use no entry of the handshake table")


class CheckChangesNoState(CheckerTest):
    """Checks take no turn, change no tree and claim no entry of the connection table, even without timestamps."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        for vip in self.tcp_vips(CCLB4):
            self.seed(vip, *vip.servers)
            before = [self.leaves.at[server.slot] for server in vip.servers]
            for server in vip.servers:
                self.goes_to(server, self.check(vip, server.sid).up("S", linux_syn(7)), "CHECK")
                self.goes_to(server, self.check(vip, server.sid, 1).up("S"), "CHECK")
                self.goes_to(server, self.check(vip, server.sid, 1).up("A"), "CHECK")
                # A server without an agent.
                self.comes_back(vip, self.check(vip, server.sid, 1).down(server.dip, "SA"), "NO_INSIGHT")
            self.assertEqual(0, self.tcp_claims())
            if self.is_softswitch:
                self.assertEqual(before, [self.leaf(server.slot) for server in vip.servers])
            # The model of the tree still agrees.
            self.begin(vip)
        self.restart()
        for vip in self.tcp_vips(CHEETAH_LL):
            self.seed(vip, *vip.servers)
            _, busy = self.begin(vip, "ASSIGNED_LL")
            self.wait_for_leaf(busy.slot, self.leaves.at[busy.slot])
            for flags in ("FA", "R"):
                self.goes_to(busy, self.check(vip, busy.sid).up(flags, stamped(9, 5)), "CHECK")
            # The connection still counts, so the next ones go to the other servers.
            self.assertNotIn(busy, [self.begin(vip, "ASSIGNED_LL")[1] for _ in range(2)])
        self.restart()
        self.add_class(0, 0.5)
        for vip in self.tcp_vips(CHEETAH_RR):
            for turn in range(6):
                self.goes_to(vip.servers[2], self.check(vip, vip.servers[2].sid).up("S", linux_syn(7)), "CHECK")
                self.goes_to(vip.servers[turn % 3], self.new_flow(vip).up("S", linux_syn(7)), "ASSIGNED_RR")


class SpoofedCheckIsAnOrdinaryClient(CheckerTest):
    """On another port, the checker's address with the port of a check names no server. So does a neighbor of the
    checker, and the checker itself from a port below 0x8000."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            sids = [server.sid for server in vip.servers]
            self.site.set_maglev(vip, [sids[0]] * vip.maglev_size)
            chosen, named = vip.servers[0], vip.servers[1]
            spoofed = self.check(vip, named.sid)
            for port in (OTHER_CLIENT_PORT, SERVER_PORT):
                self.goes_to(chosen, spoofed.up("S", linux_syn(7), port=port), "ASSIGNED_HASH", port=port)
            neighbor = Flow(Endpoint(CHECKER[vip.at.address.version] + 1, 0x8000 | named.sid), vip.at)
            self.goes_to(chosen, neighbor.up("S", linux_syn(7)), "ASSIGNED_HASH")
            low = Flow(Endpoint(CHECKER[vip.at.address.version], 0x7000 | named.sid & 0xFFF), vip.at)
            self.goes_to(chosen, low.up("S", linux_syn(7)), "ASSIGNED_HASH")
        for vip in self.quic_vips():
            self.site.set_maglev(vip, [vip.servers[0].sid] * vip.maglev_size)
            talk = self.check(vip, vip.servers[1].sid)
            for port in (OTHER_CLIENT_PORT, SERVER_PORT):
                self.drops(port, talk.datagram(short(self.foreign_cid()), port=port), "QUIC_NO_CONNECTION")
            first = talk.datagram(long(self.foreign_cid()), port=OTHER_CLIENT_PORT)
            self.goes_to(vip.servers[0], first, "ASSIGNED_HASH", port=OTHER_CLIENT_PORT)


class CheckOfAnUnknownServerDrops(CheckerTest):
    """An unused SID, or one of another VIP, reaches no server."""

    def runTest(self) -> None:
        tcp, quic = self.tcp_vips(), self.quic_vips()
        for vip, other in ((tcp[0], tcp[1]), (tcp[1], tcp[0])):
            for sid in (UNUSED_SID, other.servers[0].sid):
                for flags in ("S", "A", "R"):
                    self.drops(1, self.check(vip, sid).up(flags), "CHECK_NO_SERVER")
                    self.drops(1, self.check(vip, sid).up(flags, stamped(8, 5)), "CHECK_NO_SERVER")
        for vip, other in ((quic[0], quic[1]), (quic[1], quic[0])):
            for sid in (UNUSED_SID, other.servers[0].sid):
                self.drops(1, self.check(vip, sid).datagram(long(self.foreign_cid())), "CHECK_NO_SERVER")
                self.drops(1, self.check(vip, sid).datagram(short(KEY.cid(vip.servers[0].sid, 1))), "CHECK_NO_SERVER")


class DrainingServerIsStillChecked(CheckerTest):
    """A server that gets no new connections still gets its checks, so that its recovery is seen."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            for server in vip.servers:
                server.active = False
                self.site.update_server(vip, server)
            for server in vip.servers:
                self.goes_to(server, self.check(vip, server.sid).up("S", linux_syn(7)), "CHECK")
                self.goes_to(server, self.check(vip, server.sid).up("A", stamped(8, 5)), "CHECK")
        for vip in self.quic_vips():
            for server in vip.servers:
                server.active = False
                self.site.update_server(vip, server)
                self.goes_to(server, self.check(vip, server.sid).datagram(long(self.foreign_cid())), "CHECK")


class AnswersReachTheChecker(CheckerTest):
    """The answers of the server leave with the service's address, like those to every client."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            server = vip.servers[1]
            self.comes_back(vip, self.check(vip, server.sid).down(server.dip, "SA"), "NO_INSIGHT")
            self.comes_back(vip, self.check(vip, server.sid).down(server.dip, "PA", payload=b"HTTP/1.1 200 OK"), "NO_INSIGHT")
        for vip in self.quic_vips():
            server = vip.servers[1]
            self.comes_back(vip, self.check(vip, server.sid).response(server.dip), "NO_INSIGHT")

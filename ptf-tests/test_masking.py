# SPDX-License-Identifier: Apache-2.0
"""Masking: signals of the servers stay in the data centre. Clients see a coarse clock and a code that never
changes."""

from frontage_ptf.balancer import VIP4, VIP6, BalancerTest
from frontage_ptf.frame import Frame
from frontage_ptf.packets import MSS, NEIGHBOR_MAC, NOP, PORT_MAC, WINDOW_SCALE, Endpoint, linux_syn, sack, stamped, windows_syn
from frontage_ptf.site import HASH
from frontage_ptf.switch import KEY


class DynamicBitsNeverLeave(BalancerTest):
    """For all RPT, N_AF and N_FF the lower half is the connection's code, the upper half the clock, and CK is zero."""

    def runTest(self) -> None:
        for id, at in ((1, VIP4), (2, VIP6)):
            vip = self.make_vip(4, id, at, base=4 * id, first_sid=1000 * id)
            for server in vip.servers:
                flow = self.new_flow(vip)
                for step in range(24):
                    bit = 1 << step % 16
                    low = self.rng.choice([0, 0xFFFF, bit, 0xFFFF ^ bit])
                    clock = self.rng.getrandbits(16)
                    options = stamped(clock << 16 | low, self.rng.getrandbits(32))
                    flags = self.rng.choice(["A", "PA", "FA", "R", "SA"])
                    frame = flow.down(server.dip, flags, options, bytes(step), ck=1)
                    self.comes_back(vip, frame, "INSIGHT", tsval=KEY.static_tsval(server.sid, flow.hash, clock), ck=0)


class OtherOptionsAreUnchanged(BalancerTest):
    """MSS, window scale, SACK, MD5 and MPTCP before and after the cookie pass unchanged."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        server = vip.servers[0]
        dynamic = 0x1234 << 16 | 0xFFFF
        stamp = stamped(dynamic, 99)
        for name, options in {
            "SYN-ACK of Linux": linux_syn(dynamic, 99),
            "SYN-ACK of FreeBSD": MSS + NOP + WINDOW_SCALE + b"\x04\x02" + stamp[2:],
            "with SACK": stamp + sack(5, 6),
            "with three blocks": stamp + sack(1, 2, 3, 4, 5, 6),
            "behind MD5": NOP + NOP + bytes([19, 18] + [9] * 16) + stamp,
            "with MPTCP": stamp + bytes([30, 8, 1, 2, 3, 4, 5, 6]),
            "with fast open": stamp + bytes([34, 10, 1, 2, 3, 4, 5, 6, 7, 8]) + NOP + NOP,
        }.items():
            if name == "behind MD5" and not self.client.program.walks_options:
                continue
            with self.subTest(name):
                flow = self.new_flow(vip)
                expected = KEY.static_tsval(server.sid, flow.hash, 0x1234)
                self.comes_back(vip, flow.down(server.dip, "SA", options, ck=1), "INSIGHT", tsval=expected, ck=0)


class CkWithoutTimestampsIsCleared(BalancerTest):
    """CK never leaves the data centre, even without a TSval to mask."""

    def runTest(self) -> None:
        vip = self.make_vip(1)
        for options in (b"", windows_syn()):
            frame = self.new_flow(vip).down(vip.servers[0].dip, "A", options, ck=1)
            self.comes_back(vip, frame, "NO_INSIGHT", ck=0)


class UnusualTimestampPositionIsNotMasked(BalancerTest):
    """No agent writes a cookie at a position that the switch does not read: CK is cleared, and the rest of the
    segment is unchanged."""

    def runTest(self) -> None:
        vip = self.make_vip(1)
        options = NOP * 3 + bytes([8, 10]) + bytes(range(8)) + NOP * 3
        frame = self.new_flow(vip).down(vip.servers[0].dip, "A", options, ck=1)
        self.comes_back(vip, frame, "NO_INSIGHT", ck=0)


class ServersWithoutAgentKeepTheirClock(BalancerTest):
    """TSval passes unchanged, and the connection table keeps the server from the SYN-ACK on."""

    def runTest(self) -> None:
        vip = self.make_vip(4, policy=HASH)
        for step in range(6):
            flow = self.new_flow(vip)
            server = self.server_of(flow.up("S", linux_syn(7)), vip)
            claimed = self.claims()
            syn_ack = flow.down(server.dip, "SA", linux_syn(0xDEADBEEF, 7))
            self.comes_back(vip, syn_ack, "NO_INSIGHT")
            self.assertEqual(claimed + 1, self.claims())
            self.site.set_maglev(vip, [vip.servers[step % 4].sid] * 4)
            data = flow.up("A", stamped(8, 0xDEADBEEF))
            self.goes_to(server, data, "RETRIEVED_TABLE")
            self.comes_back(vip, flow.down(server.dip, "PA", stamped(0xDEADBEEF + 1, 8), b"data"), "NO_INSIGHT")

    def claims(self) -> int:
        return self.client.counter("FrontageIngress.cclb4.fallback.claims.claims").get(0, 0)


class ClientOptionsAreUnchanged(BalancerTest):
    """Towards the server only addresses change: the agent needs TSecr as the client sent it."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        for server in vip.servers:
            flow = self.new_flow(vip)
            frame = flow.up("PA", stamped(0xCAFEBABE, KEY.static_tsval(server.sid, flow.hash, 3)) + sack(1, 2), b"data")
            self.goes_to(server, frame, "RETRIEVED_COOKIE")


class TransitIsNotMasked(BalancerTest):
    """The switch does not clear the reserved bit of traffic without a VIP."""

    def runTest(self) -> None:
        vip = self.make_vip(1)
        stranger = Endpoint(vip.servers[0].dip.address, 9999)  # the server's host on another port
        frame = self.new_flow(vip).down(stranger, "A", stamped(0x12345678, 9), ck=1)
        self.passes(3, frame, 1, Frame(frame).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1])))


class SpoofedReportsAreDropped(BalancerTest):
    """A packet from outside with a server's address is not a report."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        for id, at in ((1, VIP4), (2, VIP6)):
            vip = self.make_vip(1, id, at, base=2 * id, first_sid=100 * id)
            frame = self.new_flow(vip).down(vip.servers[0].dip, "A", stamped(31 << 5, 9), ck=1, port=1)
            self.drops(1, frame, "SPOOFED_SOURCE")
            self.goes_to(vip.servers[0], self.new_flow(vip).up("S", linux_syn(1)), "ASSIGNED_NO_LOAD")

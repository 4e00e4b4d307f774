# SPDX-License-Identifier: Apache-2.0
"""Retrieving phase: after the SYN the cookie alone leads to the server, also while that server is draining."""

from frontage_ptf.balancer import VIP4, VIP6, BalancerTest
from frontage_ptf.frame import Frame, ones_complement_sum
from frontage_ptf.packets import MSS, NOP, WINDOW_SCALE, Endpoint, linux_syn, sack, stamped, timestamp
from frontage_ptf.site import CCLB4, CHEETAH_LL, CHEETAH_RR, HASH, Server
from frontage_ptf.switch import to_server


class EveryFlagFindsItsServer(BalancerTest):
    """The cookie of an established connection leads to its server, whatever the flags."""

    def runTest(self) -> None:
        for id, at in ((1, VIP4), (2, VIP6)):
            vip = self.make_vip(8, id, at, first_sid=100 * id)
            for server in vip.servers:
                flow = self.new_flow(vip)
                for flags in ("A", "PA", "FA", "R", "RA", "PAU", "SA", "AEC"):
                    frame = flow.up(flags, self.echoed(flow, server), b"data")
                    self.goes_to(server, frame, "RETRIEVED_COOKIE")


WALKED = (
    "behind SACK",
    "behind two SACK blocks",
    "window scale, padded behind",
    "behind four NOPs",
    "behind SACK-permitted and NOPs",
    "behind NOPs and SACK-permitted",
    "behind MPTCP",
    "behind MD5",
)
"""Layouts in which only a parser that walks all options finds the timestamp."""


class CookieBehindOtherOptions(BalancerTest):
    """The switch finds the timestamp in every layout that a known stack sends."""

    def runTest(self) -> None:
        vip = self.make_vip(4)
        server = vip.servers[3]
        flow = self.new_flow(vip)
        stamp = self.echoed(flow, server)
        bare = stamp[2:]
        layouts = {
            "alone": stamp,
            "before SACK": stamp + sack(1, 2),
            "before three SACK blocks": stamp + sack(1, 2, 3, 4, 5, 6),
            "behind SACK": sack(1, 2) + stamp,
            "behind two SACK blocks": sack(1, 2, 3, 4) + stamp,
            "behind MSS": MSS + stamp,
            "behind MSS and window scale": MSS + NOP + WINDOW_SCALE + stamp,
            "window scale, padded behind": WINDOW_SCALE + NOP + stamp,
            "behind four NOPs": NOP * 4 + stamp,
            "behind SACK-permitted": bytes([4, 2]) + bare,
            "behind SACK-permitted and NOPs": bytes([4, 2]) + NOP + NOP + stamp,
            "behind NOPs and SACK-permitted": NOP + NOP + bytes([4, 2]) + stamp,
            "behind MPTCP": bytes([30, 12] + [7] * 10) + stamp,
            "behind MD5": NOP + NOP + bytes([19, 18] + [9] * 16) + stamp,
            "before end of options": stamp + bytes(4),
        }
        for name, options in layouts.items():
            if name in WALKED and not self.client.program.walks_options:
                continue
            with self.subTest(name):
                self.goes_to(server, flow.up("PA", options, b"x"), "RETRIEVED_COOKIE")


class DrainingServersKeepConnections(BalancerTest):
    """A draining server gets no new connection after its first packet at the latest; its connections stay."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(3)
        for server in vip.servers:
            self.report(vip, server, 2, 2)
        flows = [self.begin(vip) for _ in range(9)]
        gone = vip.servers[1]
        gone.active = False
        self.site.update_server(vip, gone)
        self.report(vip, gone, 0, 0)
        for _ in range(9):
            self.assertNotEqual(gone, self.begin(vip)[1])
        for flow, server in flows:
            self.goes_to(server, flow.up("A", self.echoed(flow, server)), "RETRIEVED_COOKIE")


class DrainingServerInTheTreeIsSkipped(BalancerTest):
    """Between the controller's two steps the tree still names the draining server: the hash assigns such a SYN."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(2)
        for server, code in zip(vip.servers, (1, 9), strict=True):
            self.report(vip, server, code, code)
        vip.servers[0].active = False
        self.site.update_server(vip, vip.servers[0])
        self.site.set_maglev(vip, [vip.servers[1].sid] * 2)
        for _ in range(3):
            flow = self.new_flow(vip)
            self.goes_to(vip.servers[1], flow.up("S", linux_syn(1)), "ASSIGNED_NO_LOAD")


class CookiesOfRemovedServersGoByHash(BalancerTest):
    """The cookie of a server that is not a member any more goes by the hash. A member without an address drops for
    that reason."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        gone, left = vip.servers
        flow = self.new_flow(vip)
        options = self.echoed(flow, gone)
        self.goes_to(gone, flow.up("A", options), "RETRIEVED_COOKIE")
        self.site.delete(self.site.to_server(gone))
        self.drops(1, flow.up("A", options), "SERVER_GONE")
        self.site.delete(self.site.member(vip, gone))
        self.site.set_maglev(vip, [left.sid] * 2)
        self.goes_to(left, flow.up("A", options), "HASHED_BAD_COOKIE")


class CookiesNameServersOfTheirVip(BalancerTest):
    """A code names a server among those of its own VIP."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        other = self.make_vip(2, 2, Endpoint(VIP4.address, 8080), base=2, first_sid=200)
        flow = self.new_flow(vip)
        hashed = vip.servers[flow.hash & 1]
        self.goes_to(hashed, flow.up("A", self.echoed(flow, other.servers[0])), "HASHED_BAD_COOKIE")


class PolicyChangesKeepConnections(BalancerTest):
    """Connections stay with their servers through every change of policy."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(4)
        for server in vip.servers:
            self.report(vip, server, 2, 2)
        flows = [self.begin(vip) for _ in range(8)]
        for policy in (HASH, CHEETAH_RR, CHEETAH_LL, CCLB4):
            vip.policy = policy
            self.site.update_policy(vip)
            for flow, server in flows:
                self.goes_to(server, flow.up("PA", self.echoed(flow, server), b"on"), "RETRIEVED_COOKIE")


class ChecksumsAtTheLimits(BalancerTest):
    """Checksums that compute to zero, or just below 0xffff where the sum carries twice, follow RFC 1071."""

    def runTest(self) -> None:
        for id, at in ((1, VIP4), (2, VIP6)):
            vip = self.make_vip(1, id, at, base=2 * id, first_sid=100 * id)
            server, flow = vip.servers[0], self.new_flow(vip)
            options = self.echoed(flow, server)
            for wanted in (0, 1, *range(0xFFD0, 0xFFFF)):
                zero = to_server(flow.up("A", options, bytes(2)), server)
                filler = ones_complement_sum(Frame(zero).word(16).to_bytes(2, "big") + (0xFFFF ^ wanted).to_bytes(2, "big"))
                frame = flow.up("A", options, filler.to_bytes(2, "big"))
                self.assertEqual(wanted, Frame(to_server(frame, server)).word(16))
                if at is VIP4:
                    frame = self.with_header_checksum(frame, server, wanted)
                self.goes_to(server, frame, "RETRIEVED_COOKIE")

    def with_header_checksum(self, frame: bytes, server: Server, wanted: int) -> bytes:
        """Return the frame with an identification that makes its IPv4 checksum `wanted` on the way."""
        zero = Frame(frame[:18] + bytes(2) + frame[20:]).with_checksums()
        leaves = to_server(zero, server)[24:26]
        identification = ones_complement_sum(leaves + (0xFFFF ^ wanted).to_bytes(2, "big"))
        frame = Frame(zero[:18] + identification.to_bytes(2, "big") + zero[20:]).with_checksums()
        self.assertEqual(wanted.to_bytes(2, "big"), to_server(frame, server)[24:26])
        return frame


class TimestampsOfZero(BalancerTest):
    """TSecr of a first data segment, or of a client without a cookie yet, may be zero: it goes by the hash unless
    it happens to unseal."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        for _ in range(10):
            flow = self.new_flow(vip)
            options = NOP + NOP + timestamp(5, 0)
            self.assertEqual(options, stamped(5, 0))
            self.goes_to(vip.servers[flow.hash & 1], flow.up("A", options), "HASHED_BAD_COOKIE")

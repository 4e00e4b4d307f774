# SPDX-License-Identifier: Apache-2.0
"""Connections without a cookie: consistent hashing, and a bounded, expiring table that keeps their server when
servers change."""

import time

from frontage_ptf.balancer import VIP4, VIP6, BalancerTest
from frontage_ptf.names import CLAIMS
from frontage_ptf.packets import MSS, NOP, WINDOW_SCALE, Endpoint, Flow, linux_syn, random_client, stamped, timestamp, windows_syn
from frontage_ptf.site import CCLB4, CHEETAH_LL, CHEETAH_RR, HASH, Server, Vip

TIMEOUT = 1  # ticks of 2^20 us, or of 2^30 ns on Tofino
# An entry stays alive for TIMEOUT ticks and a fraction of the next one.
EXPIRED = (TIMEOUT + 1) * 1.08 + 0.5


class FallbackTest(BalancerTest):
    """A VIP whose whole Maglev table can be switched to another server."""

    def setUp(self) -> None:
        super().setUp()
        self.vip = self.make_vip(4)

    def give_all_to(self, server: Server, vip: Vip | None = None) -> None:
        vip = vip or self.vip
        self.site.set_maglev(vip, [server.sid] * vip.maglev_size)

    def claims(self) -> dict[str, int]:
        counts = self.client.counter("FrontageIngress.cclb4.fallback.claims.claims")
        return {CLAIMS[kind]: count for kind, count in counts.items()}

    def begin_without(self, flow: Flow, server: Server, options: bytes = b"") -> None:
        """Send a SYN without timestamps."""
        self.goes_to(server, flow.up("S", options), "ASSIGNED_FALLBACK")

    def colliding_pair(self) -> tuple[Flow, Flow]:
        """Return two connections with the same index in the connection table."""
        seen: dict[int, Flow] = {}
        while True:
            flow = Flow(random_client(self.rng, False), self.vip.at)
            other = seen.setdefault(flow.table_index, flow)
            if other != flow and other.hash != flow.hash:
                return other, flow


class ConnectionsWithoutTimestampsGoByMaglev(FallbackTest):
    """Under every policy SYN and data reach the same server; the table keeps it from the SYN or SYN-ACK on."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip6 = self.make_vip(4, 2, VIP6, base=4, first_sid=200)
        for policy in (HASH, CHEETAH_RR, CHEETAH_LL, CCLB4):
            for vip in (self.vip, vip6):
                vip.policy = policy
                self.site.update_policy(vip)
                for options in (b"", MSS, windows_syn()):
                    flow = self.new_flow(vip)
                    server = vip.servers[flow.hash & 3]
                    self.begin_without(flow, server, options)
                    self.comes_back(vip, flow.down(server.dip, "SA", options), "NO_INSIGHT")
                    self.goes_to(server, flow.up("A"), "RETRIEVED_TABLE")
                    self.comes_back(vip, flow.down(server.dip, "PA", b"", b"data"), "NO_INSIGHT")


class UnusualOptionLayoutsGoByMaglev(FallbackTest):
    """The switch ignores timestamps at an unusual position, and serves the connection."""

    def runTest(self) -> None:
        ts = timestamp(1, 2)
        for name, options in {
            "unaligned, first": ts + NOP + NOP,
            "behind one NOP": NOP + ts + NOP,
            "behind three NOPs": NOP * 3 + ts + NOP * 3,
            "behind unpadded window scale": WINDOW_SCALE + ts + NOP * 3,
            "of a wrong length": NOP + NOP + bytes([8, 6, 1, 2, 3, 4]),
            "cut by the end of the header": NOP + NOP + bytes([8, 10, 0, 0, 0, 0]),
            "behind end of options": bytes(4) + stamped(1, 2),
            "behind an option of no length": bytes([77, 0, 0, 0]) + stamped(1, 2),
            "behind an option that never ends": bytes([77, 80, 0, 0]) + stamped(1, 2),
        }.items():
            with self.subTest(name):
                flow = self.new_flow(self.vip)
                server = self.vip.servers[flow.hash & 3]
                self.begin_without(flow, server, options)
                self.goes_to(server, flow.up("A", options), "RETRIEVED_TABLE")


class EntrySurvivesPoolChanges(FallbackTest):
    """Later changes of Maglev's table affect new connections only."""

    def runTest(self) -> None:
        one, two, three, _ = self.vip.servers
        flow, later = self.new_flow(self.vip), self.new_flow(self.vip)
        self.give_all_to(one)
        self.begin_without(flow, one)
        self.give_all_to(two)
        self.goes_to(one, flow.up("A"), "RETRIEVED_TABLE")
        self.begin_without(later, two)
        self.give_all_to(three)
        for _ in range(3):
            self.goes_to(one, flow.up("PA", b"", b"data"), "RETRIEVED_TABLE")
            self.goes_to(two, later.up("PA", b"", b"data"), "RETRIEVED_TABLE")
        self.assertEqual({"TAKEN": 2}, self.claims())


class NoEntryWithoutSyn(FallbackTest):
    """Without a SYN or SYN-ACK no packet claims an entry: each goes where Maglev says at the time."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        for flags, options in (("A", b""), ("PA", stamped(1, 2)), ("S", b""), ("RA", b"")):
            self.comes_back(self.vip, flow.down(self.vip.servers[0].dip, flags, options), "NO_INSIGHT")
        for server in self.vip.servers:
            self.give_all_to(server)
            self.goes_to(server, flow.up("A"), "HASHED_NO_COOKIE")
            self.goes_to(server, flow.up("FA"), "HASHED_NO_COOKIE")
        self.assertEqual({}, self.claims())


class EntriesExpire(FallbackTest):
    """After the timeout the connection is unknown. Until then every packet of the client refreshes it."""

    timeout = TIMEOUT

    def runTest(self) -> None:
        one, two, *_ = self.vip.servers
        quiet, busy = self.new_flow(self.vip), self.new_flow(self.vip)
        self.give_all_to(one)
        self.begin_without(quiet, one)
        self.begin_without(busy, one)
        self.give_all_to(two)
        end = time.monotonic() + EXPIRED
        while time.monotonic() < end:
            self.goes_to(one, busy.up("A"), "RETRIEVED_TABLE")
            time.sleep(0.1)
        self.goes_to(two, quiet.up("A"), "HASHED_NO_COOKIE")


class LiveEntriesAreNotEvicted(FallbackTest):
    """A new connection never replaces a live one: Maglev alone serves the new one, and the claims count this."""

    def runTest(self) -> None:
        one, two, *_ = self.vip.servers
        owner, late = self.colliding_pair()
        self.give_all_to(one)
        self.begin_without(owner, one)
        self.assertEqual({"TAKEN": 1}, self.claims())
        self.begin_without(late, one)
        self.assertEqual({"TAKEN": 1, "REFUSED": 1}, self.claims())
        self.goes_to(one, late.up("A"), "HASHED_NO_COOKIE")
        self.give_all_to(two)
        self.goes_to(two, late.up("A"), "HASHED_NO_COOKIE")
        self.goes_to(one, owner.up("A"), "RETRIEVED_TABLE")
        self.begin_without(owner, two)  # the client retransmits its SYN, which renews the entry
        self.goes_to(two, owner.up("A"), "RETRIEVED_TABLE")


class ExpiredEntriesAreReused(FallbackTest):
    """Another connection can claim an expired entry."""

    timeout = TIMEOUT

    def runTest(self) -> None:
        one, two, *_ = self.vip.servers
        owner, late = self.colliding_pair()
        self.give_all_to(one)
        self.begin_without(owner, one)
        time.sleep(EXPIRED)
        self.give_all_to(two)
        self.begin_without(late, two)
        self.assertEqual({"TAKEN": 2}, self.claims())
        self.give_all_to(one)
        self.goes_to(two, late.up("A"), "RETRIEVED_TABLE")
        self.goes_to(one, owner.up("A"), "HASHED_NO_COOKIE")


class CookieSynReleasesTheEntry(FallbackTest):
    """A new connection with timestamps removes the entry of an earlier one with the same addresses and ports."""

    def runTest(self) -> None:
        one, two, *_ = self.vip.servers
        flow = self.new_flow(self.vip)
        self.give_all_to(one)
        self.begin_without(flow, one)
        self.give_all_to(two)
        self.goes_to(two, flow.up("S", linux_syn(1)), "ASSIGNED_NO_LOAD")
        self.goes_to(two, flow.up("A"), "HASHED_NO_COOKIE")


class CookieSynReleasesOnlyItsOwn(FallbackTest):
    """It does not remove the entry of another connection with the same index."""

    def runTest(self) -> None:
        one, two, *_ = self.vip.servers
        owner, other = self.colliding_pair()
        self.give_all_to(one)
        self.begin_without(owner, one)
        self.give_all_to(two)
        self.goes_to(two, other.up("S", linux_syn(1)), "ASSIGNED_NO_LOAD")
        self.goes_to(one, owner.up("A"), "RETRIEVED_TABLE")


class EntriesOfRemovedServersDrop(FallbackTest):
    """Packets of a connection whose server was removed are dropped for that reason, not sent to a server that does
    not know it."""

    def runTest(self) -> None:
        one, two, *_ = self.vip.servers
        flow = self.new_flow(self.vip)
        self.give_all_to(one)
        self.begin_without(flow, one)
        self.give_all_to(two)
        self.site.remove_server(self.vip, one)
        self.drops(1, flow.up("A"), "SERVER_GONE")


class MaglevTablesOfAnySize(FallbackTest):
    """A VIP's Maglev table may have any power of two of slots: the low bits of the hash choose."""

    def runTest(self) -> None:
        for id, size in ((10, 1), (11, 2), (12, 64), (13, 1024)):
            vip = Vip(id, Endpoint(VIP4.address, 8000 + id))
            self.site.add_vip(vip)
            vip.maglev_size = size
            self.site.insert(self.site.maglev(vip, [self.vip.servers[slot % 4].sid for slot in range(size)]))
            self.site.update_policy(vip)
            for _ in range(16):
                flow = self.new_flow(vip)
                self.begin_without(flow, self.vip.servers[(flow.hash & size - 1) % 4])

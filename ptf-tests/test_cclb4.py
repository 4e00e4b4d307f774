# SPDX-License-Identifier: Apache-2.0
"""Policies, each a table entry of one VIP: hash, cheetah-rr, cheetah-ll, and cclb4 with a from 0 (future) to 1
(current)."""

import random
import threading
from collections import Counter

from finsy import P4DirectCounterEntry

from frontage_ptf.balancer import TCP_CONTROL, VIP4, VIP6, BalancerTest
from frontage_ptf.client import TEST_TIMEOUT
from frontage_ptf.packets import Endpoint, Flow, linux_syn, random_client, stamped
from frontage_ptf.site import CCLB4, CHEETAH_LL, CHEETAH_RR, CLEAR, HASH, Server, Vip
from frontage_ptf.switch import FrontageTest, to_server


class VipsWithoutServerOrPolicyDrop(FrontageTest):
    """A VIP without servers, and one without a policy entry, drop packets for a named reason."""

    control = TCP_CONTROL

    def runTest(self) -> None:
        for number, at in enumerate((VIP4, VIP6)):
            vip = Vip(number, at)
            self.site.add_vip(vip)
            flow = Flow(random_client(random.Random(1), at.address.version == 6), at)
            for options in (linux_syn(1), b""):
                self.drops(1, flow.up("S", options), "VIP_NO_SERVER")
                self.drops(1, flow.up("A", stamped(1, 2) if options else b""), "VIP_NO_SERVER")
            self.site.delete(self.site.policy(vip))
            self.drops(1, flow.up("S", linux_syn(1)), "VIP_NO_SERVER")


class EmptyHashTable(BalancerTest):
    """An empty Maglev table names no server, not the one with SID zero. Connections with a cookie are not affected."""

    def runTest(self) -> None:
        vip = self.make_vip(1, policy=HASH, first_sid=0)
        self.site.delete(*self.site.maglev(vip, [0]))
        flow = self.new_flow(vip)
        for frame in (flow.up("S", linux_syn(1)), flow.up("S"), flow.up("A"), flow.up("A", stamped(1, 0x1234))):
            self.drops(1, frame, "VIP_NO_SERVER")
        self.goes_to(vip.servers[0], flow.up("A", self.echoed(flow, vip.servers[0])), "RETRIEVED_COOKIE")


class HashPolicy(BalancerTest):
    """The CRC-32 of the connection chooses a Maglev slot, regardless of loads."""

    def runTest(self) -> None:
        for id, at in ((1, VIP4), (2, VIP6)):
            vip = self.make_vip(5, id, at, policy=HASH, base=8 * id, first_sid=100 * id)
            for _ in range(30):
                flow = self.new_flow(vip)
                slot = flow.hash & vip.maglev_size - 1
                self.goes_to(vip.servers[slot % 5], flow.up("S", linux_syn(1)), "ASSIGNED_HASH")


class RoundRobinPolicy(BalancerTest):
    """Servers take turns; one of weight w has w pool entries. Each VIP has its own index."""

    def runTest(self) -> None:
        turns = []
        for id, at, places in ((1, VIP4, [0, 1, 2, 1]), (2, VIP6, [2, 0, 1])):
            vip = self.make_vip(3, id, at, policy=CHEETAH_RR, base=8 * id, first_sid=100 * id)
            self.site.set_pool(vip, [vip.servers[place].sid for place in places])
            self.site.update_policy(vip)
            turns.append((vip, places))
        for step in range(12):
            for vip, places in turns:
                server = vip.servers[places[step % len(places)]]
                self.goes_to(server, self.new_flow(vip).up("S", linux_syn(1)), "ASSIGNED_RR")


class RoundRobinShrinks(BalancerTest):
    """When the pool shrinks, the round starts over. The hash replaces a draining server in the pool."""

    def runTest(self) -> None:
        vip = self.make_vip(4, policy=CHEETAH_RR)
        self.site.set_pool(vip, [server.sid for server in vip.servers])
        self.site.update_policy(vip)
        for server in vip.servers[:3]:
            self.goes_to(server, self.new_flow(vip).up("S", linux_syn(1)), "ASSIGNED_RR")
        vip.pool_size = 2
        self.site.update_policy(vip)
        for server in vip.servers[:2] * 2:
            self.goes_to(server, self.new_flow(vip).up("S", linux_syn(1)), "ASSIGNED_RR")
        vip.servers[0].active = False
        self.site.update_server(vip, vip.servers[0])
        self.site.set_maglev(vip, [vip.servers[3].sid] * 4)
        self.goes_to(vip.servers[3], self.new_flow(vip).up("S", linux_syn(1)), "ASSIGNED_NO_LOAD")
        self.goes_to(vip.servers[1], self.new_flow(vip).up("S", linux_syn(1)), "ASSIGNED_RR")


class EmptyPoolFallsBackToMaglev(BalancerTest):
    """With an empty pool the hash chooses the server, and the outcome counts this."""

    def runTest(self) -> None:
        vip = self.make_vip(2, policy=CHEETAH_RR)
        flow = self.new_flow(vip)
        self.goes_to(vip.servers[flow.hash & 1], flow.up("S", linux_syn(1)), "ASSIGNED_NO_LOAD")


class LeastLocalCountPolicy(BalancerTest):
    """cheetah-ll counts what the switch sees: a SYN adds one, a FIN or RST subtracts one. Reports do not change it."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(4, policy=CHEETAH_LL)
        self.seed(vip, *vip.servers)
        flows: list[tuple[Flow, Server]] = []
        for step in range(60):
            if flows and self.rng.random() < 0.4:
                flow, server = flows.pop(self.rng.randrange(len(flows)))
                frame = flow.up(self.rng.choice(["FA", "R", "RA"]), self.echoed(flow, server))
                self.goes_to(server, frame, "RETRIEVED_COOKIE")
                self.leaves.sub(server.slot, server.sid, vip.flow_unit, flow.hash)
            else:
                flows.append(self.begin(vip, "ASSIGNED_LL"))
            if step % 10 == 0:
                tsval = 31 << 5 | 31
                self.fate(3, self.new_flow(vip).down(vip.servers[0].dip, options=stamped(tsval), ck=1))


class CurrentAndFuture(BalancerTest):
    """With a = 1 only active flows count, with a = 0 only those that will last."""

    def doRunTest(self, a: float, expected: int) -> None:
        self.restart()
        self.add_class(0, a)
        vip = self.make_vip(3)
        for server, codes in zip(vip.servers, ((2, 20), (20, 2), (9, 9)), strict=True):
            self.report(vip, server, *codes)
        self.assertEqual(vip.servers[expected], self.begin(vip)[1])

    def runTest(self) -> None:
        self.doRunTest(1.0, 0)
        self.doRunTest(0.0, 1)
        self.doRunTest(0.5, 2)


class ScoresOfOneLoadOnly(BalancerTest):
    """A load without a score leaves the server's leaf as it is."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(2)
        self.report(vip, vip.servers[0], 2, 2)
        self.report(vip, vip.servers[1], 20, 20)
        self.site.delete(*self.site.score_entries(0, "ff", 0.5))
        del self.shares[0]
        self.report(vip, vip.servers[0], 31, 31)
        self.assertEqual(vip.servers[0], self.begin(vip)[1])


class PolicyChangesAtRunTime(BalancerTest):
    """The new policy chooses from the next SYN on, with the scores that the tree already has."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(3)
        self.site.set_pool(vip, [server.sid for server in vip.servers])
        for server, code in zip(vip.servers, (3, 9, 12), strict=True):
            self.report(vip, server, code, code)
        for policy, outcome in (
            (CCLB4, "ASSIGNED_CCLB4"),
            (HASH, "ASSIGNED_HASH"),
            (CHEETAH_RR, "ASSIGNED_RR"),
            (CHEETAH_LL, "ASSIGNED_LL"),
            (CCLB4, "ASSIGNED_CCLB4"),
        ):
            vip.policy = policy
            self.site.update_policy(vip)
            if policy in (CCLB4, CHEETAH_LL):
                self.begin(vip, outcome)
            else:
                before = self.outcomes()
                self.server_of(self.new_flow(vip).up("S", linux_syn(1)), vip)
                self.assertEqual({outcome: 1}, dict(self.outcomes() - before))


class ServersJoinAndLeave(BalancerTest):
    """A server that joins with a lower load gets the next connections. One that was removed gets no more."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(3, spare=5)
        for server in vip.servers:
            self.report(vip, server, 8, 8)
        free = next(slot for slot in range(8) if slot not in {server.slot for server in vip.servers})
        joined = Server(500, Endpoint(vip.servers[0].dip.address + 99, 8080), slot=free)
        vip.servers.append(joined)
        self.site.add_server(vip, joined)
        self.seed(vip, joined)
        self.assertEqual([joined] * 8, [self.begin(vip)[1] for _ in range(8)])
        for leaver in (joined, vip.servers[0]):
            leaver.active = False
            self.site.update_server(vip, leaver)
            self.site.update_tree(vip, CLEAR, leaver.slot, leaver.sid)
            self.leaves.clear(leaver.slot)
            self.wait_for_leaf(leaver.slot, 0)
        chosen = Counter(self.begin(vip)[1].sid for _ in range(6))
        self.assertEqual({101: 3, 102: 3}, dict(chosen))


class TablesChangeUnderTraffic(BalancerTest):
    """While entries are rewritten continuously, every packet reaches one of the servers in them, or the one of its
    cookie."""

    def runTest(self) -> None:
        vip = self.make_vip(4, policy=HASH)
        one, two, three, _ = vip.servers
        steady = self.new_flow(vip)
        steady_frame = steady.up("PA", self.echoed(steady, three), b"steady")
        done = threading.Event()
        rewritten = 0

        def rewrite() -> None:
            nonlocal rewritten
            while not done.is_set():
                for server in (two, one):
                    self.site.set_maglev(vip, [server.sid] * 4)
                    self.site.update_server(vip, server)
                    rewritten += 1

        self.site.set_maglev(vip, [one.sid] * 4)
        writer = threading.Thread(target=rewrite)
        writer.start()
        possible = set()
        came: Counter[tuple[int, bytes]] = Counter()
        try:
            for _ in range(40):
                syns = [self.new_flow(vip).up("S", linux_syn(1)) for _ in range(20)]
                for frame in syns:
                    self.send(1, frame)
                    self.send(1, steady_frame)
                possible |= {to_server(frame, server) for frame in syns for server in (one, two)}
                for _ in range(40):
                    came[self.receive(TEST_TIMEOUT) or (0, b"nothing")] += 1
        finally:
            done.set()
            writer.join()
        self.assertGreater(rewritten, 10)
        self.assertEqual(800, came.pop((3, to_server(steady_frame, three))))
        self.assertEqual(800, came.total())
        self.assertLessEqual({frame for _, frame in came}, possible)


class CountersPerServer(BalancerTest):
    """Packets and bytes of each server, in both directions, as they arrived."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        server = vip.servers[1]
        flow = self.new_flow(vip)
        up, down = (
            [flow.up("PA", self.echoed(flow, server), bytes(n)) for n in (0, 10, 999)],
            flow.down(server.dip, options=stamped(1, 2)),
        )
        for frame in up:
            self.goes_to(server, frame)
        self.comes_back(vip, down)
        for entry, frames in ((self.site.to_server(server), up), (self.site.from_server(vip, server), [down])):
            entry.action = None
            (cell,) = self.client.read(P4DirectCounterEntry(entry.table_id, table_entry=entry))
            self.assertEqual((len(frames), self.counted_bytes(frames)), (cell.packet_count, cell.byte_count))

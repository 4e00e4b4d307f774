# SPDX-License-Identifier: Apache-2.0
"""Assigning phase: a SYN goes to the server with the lowest score, exactly, for any number of servers."""

from frontage_ptf.balancer import UNIT, VIP4, VIP6, BalancerTest, load
from frontage_ptf.cookie import decode
from frontage_ptf.packets import Endpoint, linux_syn
from frontage_ptf.site import ADD, CLEAR, SET, SUB
from frontage_ptf.tree import Leaves


class LowestScoreIsExact(BalancerTest):
    """After random reports the choice equals a plain argmin over all servers, for 1 to 16 servers and for 300."""

    def doRunTest(self, count: int, a: float, events: int) -> None:
        self.restart()
        self.add_class(0, a)
        vip = self.make_vip(count, at=self.rng.choice([VIP4, VIP6]))
        for server in vip.servers:
            self.report(vip, server, self.rng.randrange(32), self.rng.randrange(32))
        for _ in range(events):
            if self.rng.random() < 0.6:
                server = self.rng.choice(vip.servers)
                self.report(vip, server, self.rng.randrange(32), self.rng.randrange(32))
            else:
                self.begin(vip)

    def runTest(self) -> None:
        for count in range(1, 17):
            with self.subTest(servers=count):
                self.doRunTest(count, self.rng.choice([0, 0.25, 0.5, 0.75, 1]), 40)
        with self.subTest(servers=300):
            self.doRunTest(300, 0.5, 400)


class EveryDepthOfTree(BalancerTest):
    """Trees of one slot to the largest, in the second half of all slots, with servers in the first slot, the last one
    and a few others."""

    def runTest(self) -> None:
        for depth in range(self.client.program.tree_levels + 1):
            with self.subTest(depth=depth):
                self.restart()
                self.add_class(0, 1.0)
                base, slots = 4096, 1 << depth
                vip = self.make_vip(min(5, slots), base=base, spare=max(0, slots - 5))
                self.assertEqual(depth, vip.tree_depth)
                for server, slot in zip(vip.servers, (0, slots - 1, slots // 2, slots // 3, slots // 5), strict=False):
                    server.slot = base + slot
                    self.site.update_server(vip, server)
                for server in vip.servers:
                    self.report(vip, server, self.rng.randrange(16), 0)
                for _ in range(8):
                    self.begin(vip)
                    self.report(vip, self.rng.choice(vip.servers), self.rng.randrange(16), 0)


class ScoreIsThatOfThePaper(BalancerTest):
    """For two servers and random pairs of codes, the one with the smaller (a * N_AF + (1 - a) * N_FF) / weight
    wins."""

    def runTest(self) -> None:
        classes = [(0.0, 1.0), (1.0, 1.0), (0.5, 1.0), (0.75, 2.0), (0.3, 4.0)]
        for number, (a, weight) in enumerate(classes):
            self.add_class(number, a, weight)
        vip = self.make_vip(2)
        compared = 0
        for _ in range(150):
            loads = []
            for server in vip.servers:
                server.score_class = self.rng.randrange(len(classes))
                codes = self.rng.randrange(32), self.rng.randrange(32)
                loads.append(load(*codes, *classes[server.score_class]))
                self.site.update_server(vip, server)
                self.report(vip, server, *codes)
            _, chosen = self.begin(vip)
            if abs(loads[0] - loads[1]) > 1 / UNIT:  # the table's rounding
                self.assertEqual(vip.servers[loads.index(min(loads))], chosen, f"loads {loads}")
                compared += 1
        self.assertGreater(compared, 100)


class FlowsBetweenReportsCount(BalancerTest):
    """Without new reports connections spread evenly: each adds one unit at once."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(5)
        for server in vip.servers:
            self.report(vip, server, 4, 4)
        chosen = [self.begin(vip)[1].sid for _ in range(40)]
        self.assertEqual({server.sid: 8 for server in vip.servers}, {sid: chosen.count(sid) for sid in set(chosen)})


class BurstGoesToLeastLoadedServers(BalancerTest):
    """A server with k flows fewer gets k connections before the others get their next one."""

    def runTest(self) -> None:
        self.add_class(0, 1.0)
        vip = self.make_vip(3)
        for server, code in zip(vip.servers, (3, 8, 9), strict=True):  # 3, 8 and 10 flows
            self.report(vip, server, code, 0)
        self.assertEqual([3, 8, 10], [decode(code) for code in (3, 8, 9)])
        first = [self.begin(vip)[1].sid for _ in range(5)]
        self.assertEqual([vip.servers[0].sid] * 5, first)


class ServersOfWeightTwo(BalancerTest):
    """Scores are divided by the weight: twice the flows count the same on a server of twice the weight."""

    def runTest(self) -> None:
        self.add_class(0, 1.0, 1.0)
        self.add_class(1, 1.0, 2.0)
        vip = self.make_vip(2)
        vip.servers[1].score_class = 1
        self.site.update_server(vip, vip.servers[1])
        one, two = vip.servers
        self.report(vip, one, 5, 0)
        self.report(vip, two, 8, 0)  # 8 / 2 = 4 flows
        self.assertEqual(two, self.begin(vip)[1])
        self.report(vip, two, 9, 0)  # 10 / 2 = 5
        self.assertEqual(self.leaves.headroom(one.slot), self.leaves.headroom(two.slot))
        self.begin(vip)
        self.report(vip, one, 5, 0)
        self.report(vip, two, 10, 0)  # 12 / 2 = 6
        self.assertEqual(one, self.begin(vip)[1])


class VipsAreIndependent(BalancerTest):
    """Trees of different depths lie side by side, and each VIP has its own best server."""

    def runTest(self) -> None:
        self.add_class(0, 1.0)
        blocks = [
            (1, VIP4, 8, 8),
            (2, VIP6, 3, 16),
            (3, Endpoint(VIP4.address, 8080), 1, 20),
            (4, Endpoint(VIP6.address, 1), 5, 24),
        ]
        vips = []
        for id, at, count, base in blocks:
            vip = self.make_vip(count, id, at, base=base, first_sid=100 * id)
            vips.append((vip, Leaves(keeps_ties=self.target == "tna")))
        for _ in range(120):
            vip, self.leaves = self.rng.choice(vips)
            if self.leaves.best(vip) is None or self.rng.random() < 0.5:
                self.report(vip, self.rng.choice(vip.servers), self.rng.randrange(32), 0)
            else:
                self.begin(vip)


class EmptyTreeFallsBackToMaglev(BalancerTest):
    """A switch without loads uses the hash and counts that. The first report ends this."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(4)
        for _ in range(20):
            flow = self.new_flow(vip)
            hashed = vip.servers[flow.hash & 0xFFFF & vip.maglev_size - 1]
            self.goes_to(hashed, flow.up("S", linux_syn(7)), "ASSIGNED_NO_LOAD")
        self.report(vip, vip.servers[2], 9, 9)
        self.assertEqual(vip.servers[2], self.begin(vip)[1])


class ReportsWithoutScoresAreIgnored(BalancerTest):
    """Reports of a score class without entries do not change the tree."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        self.report(vip, vip.servers[0], 1, 1)
        flow = self.new_flow(vip)
        hashed = vip.servers[flow.hash & vip.maglev_size - 1]
        self.goes_to(hashed, flow.up("S", linux_syn(7)), "ASSIGNED_NO_LOAD")


class ControllerUpdatesTheTree(BalancerTest):
    """Packet-out: SEED makes a server eligible and keeps a known score; SET, ADD and SUB change the score; CLEAR
    removes the server."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(3, spare=1)
        one, two, three = vip.servers
        self.seed(vip, one, two)
        self.assertCountEqual([two, one, two, one], [self.begin(vip)[1] for _ in range(4)])
        self.seed(vip, two, three)  # two keeps its score
        self.assertEqual([three, three], [self.begin(vip)[1] for _ in range(2)])
        for op, slot, sid, amount in (
            (SET, one.slot, one.sid, 50),
            (ADD, one.slot, one.sid, 7),
            (SUB, one.slot, one.sid, 57),
            (SUB, one.slot, one.sid, 0xFFFF),
            (ADD, two.slot, two.sid, 0xFFFF),
            (CLEAR, three.slot, three.sid, 0),
        ):
            self.site.update_tree(vip, op, slot, sid, amount)
            if op == SET:
                self.leaves.set(slot, sid, amount)
            elif op == CLEAR:
                self.leaves.clear(slot)
            else:
                (self.leaves.add if op == ADD else self.leaves.sub)(slot, sid, amount)
            self.wait_for_leaf(slot, self.leaves.at[slot])
            self.begin(vip)


class ReusedSlotStartsAnew(BalancerTest):
    """SEED of another server in a slot discards the score of the previous one."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(2)
        old, other = vip.servers
        self.report(vip, old, 20, 20)
        self.report(vip, other, 2, 2)
        self.site.remove_server(vip, old)
        old.sid = 900
        self.site.add_server(vip, old)
        self.seed(vip, old)
        self.assertEqual(old, self.begin(vip)[1])


class ScoresSaturate(BalancerTest):
    """With the highest loads that a cookie can carry, and more connections on top, a server stays eligible as the
    last resort."""

    def runTest(self) -> None:
        self.add_class(0, 0.5, 0.05)  # 0.5 * 448 * 16 / 0.05 is beyond 16 bits, twice
        vip = self.make_vip(2)
        for server in vip.servers:
            self.report(vip, server, 31, 31)
        for _ in range(6):
            self.begin(vip)

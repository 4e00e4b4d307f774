"""Assigning phase: a SYN goes to the server of the least score, exactly, whatever the number of servers."""

from frontage_ptf.balancer import UNIT, VIP4, VIP6, BalancerTest, load
from frontage_ptf.cookie import decode
from frontage_ptf.packets import Endpoint, linux_syn
from frontage_ptf.site import ADD, CLEAR, SET, SUB
from frontage_ptf.tree import Leaves


class LeastLoadIsExact(BalancerTest):
    """After random reports the choice is that of a plain argmin over all servers, for 1 to 16 of them, and for 300."""

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
    """From one slot to 4,096, with servers in the first, the last and a few more, in the second half of all slots."""

    def runTest(self) -> None:
        for depth in range(13):
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


class ScoreIsThePapers(BalancerTest):
    """With two servers and every pair of codes that a seed draws, the smaller a * N_AF + (1 - a) * N_FF over the weight wins."""

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
    """Without news from the servers, flows spread evenly: each weighs one unit at once."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(5)
        for server in vip.servers:
            self.report(vip, server, 4, 4)
        chosen = [self.begin(vip)[1].sid for _ in range(40)]
        self.assertEqual({server.sid: 8 for server in vip.servers}, {sid: chosen.count(sid) for sid in set(chosen)})


class BurstGoesWhereThereIsRoom(BalancerTest):
    """A server with k flows fewer takes k flows more before the others get their next."""

    def runTest(self) -> None:
        self.add_class(0, 1.0)
        vip = self.make_vip(3)
        for server, code in zip(vip.servers, (3, 8, 9), strict=True):  # 3, 8 and 10 flows
            self.report(vip, server, code, 0)
        self.assertEqual([3, 8, 10], [decode(code) for code in (3, 8, 9)])
        first = [self.begin(vip)[1].sid for _ in range(5)]
        self.assertEqual([vip.servers[0].sid] * 5, first)


class ServersOfWeightTwo(BalancerTest):
    """A score is per weight: twice the flows weigh the same on a server of twice the weight."""

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


class VipsDoNotMix(BalancerTest):
    """Trees of different depths lie side by side; each VIP's best is its own."""

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
            vips.append((self.make_vip(count, id, at, base=base, first_sid=100 * id), Leaves()))
        for _ in range(120):
            vip, self.leaves = self.rng.choice(vips)
            if self.leaves.best(vip) is None or self.rng.random() < 0.5:
                self.report(vip, self.rng.choice(vip.servers), self.rng.randrange(32), 0)
            else:
                self.begin(vip)


class EmptyTreeIsMaglev(BalancerTest):
    """A switch that knows no loads hashes, and says so; the first report makes an end of it."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_vip(4)
        for _ in range(20):
            flow = self.new_flow(vip)
            hashed = vip.servers[flow.hash & 0xFFFF & vip.maglev_size - 1]
            self.goes_to(hashed, flow.up("S", linux_syn(7)), "ASSIGNED_NO_LOAD")
        self.report(vip, vip.servers[2], 9, 9)
        self.assertEqual(vip.servers[2], self.begin(vip)[1])


class ReportsWithoutScores(BalancerTest):
    """A class without entries in the score tables scores nothing: such reports leave the tree alone."""

    def runTest(self) -> None:
        vip = self.make_vip(2)
        self.report(vip, vip.servers[0], 1, 1)
        flow = self.new_flow(vip)
        hashed = vip.servers[flow.hash & vip.maglev_size - 1]
        self.goes_to(hashed, flow.up("S", linux_syn(7)), "ASSIGNED_NO_LOAD")


class ControllerSpeaksToTheTree(BalancerTest):
    """By packet-out: SEED makes a server eligible without undoing what is known of it, SET, ADD and SUB move its score, CLEAR ends it."""

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
            self.site.tell_tree(vip, op, slot, sid, amount)
            if op == SET:
                self.leaves.set(slot, sid, amount)
            elif op == CLEAR:
                self.leaves.clear(slot)
            else:
                (self.leaves.add if op == ADD else self.leaves.sub)(slot, sid, amount)
            self.wait_for_leaf(slot, self.leaves.at[slot])
            self.begin(vip)


class ReusedSlotStartsAnew(BalancerTest):
    """SEED of another server in a slot forgets the score of the one before it."""

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
    """The heaviest loads that a cookie can carry, and flows on top of them, leave a server eligible: the last resort, not gone."""

    def runTest(self) -> None:
        self.add_class(0, 0.5, 0.05)  # 0.5 * 448 * 16 / 0.05 is beyond 16 bits, twice
        vip = self.make_vip(2)
        for server in vip.servers:
            self.report(vip, server, 31, 31)
        for _ in range(6):
            self.begin(vip)

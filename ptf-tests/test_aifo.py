# SPDX-License-Identifier: Apache-2.0
"""AIFO: admission to a port's queue by rank and queue depth (docs/aifo.md)."""

import os
import random
from fractions import Fraction
from ipaddress import ip_address

from frontage_ptf.aifo import Aifo
from frontage_ptf.balancer import VIP4
from frontage_ptf.frame import Frame
from frontage_ptf.packets import Endpoint, Flow, linux_syn, random_client
from frontage_ptf.scheduling import DEPTH, UNREPORTED, SchedulerTest
from frontage_ptf.site import CCLB4, SEED, Server, Vip

PACKETS = int(os.environ.get("PACKETS") or 3000)
BATCH = 40  # capacity of BMv2's queues


class AdmissionAgreesWithThePaper(SchedulerTest):
    """Packets of random ranks to three ports get the same decisions as the reference model. PACKETS (an environment
    variable) sets their number.

    The depth that a departure reports depends on the switch's pace, so no departure is reported while a port's queue
    fills. When it is full, one worker packet empties it. One departure in UNREPORTED is still reported: packets go one
    by one then, and leave an empty queue behind."""

    def runTest(self) -> None:
        rng = random.Random(7)
        models = {
            1: Aifo(60, 20, 1, Fraction(1, 10), UNREPORTED),
            2: Aifo(20, 16, 3, Fraction(1, 4), UNREPORTED),
            4: Aifo(33, 7, 2, Fraction(0), UNREPORTED),
        }
        for port, model in models.items():
            self.use_aifo(port, model.capacity, model.size, model.sample, UNREPORTED)
            self.set_limits(port, model.capacity, model.size, model.k)
        sent = refused = 0
        while sent < PACKETS:
            batch = 1 if any(model.reports_within(BATCH) for model in models.values()) else BATCH
            frames, expected, reports = [], set(), 0
            for number in range(sent, sent + batch):
                port, rank = rng.choice((1, 2, 4)), min(rng.randrange(256), rng.randrange(256))
                frame = self.packet(rank, port, number)
                frames.append((frame, port))
                if models[port].admits(rank):
                    reports += models[port].departs(0)
                    expected.add(frame)
            seen = self.workers(DEPTH) if reports else 0
            self.assertEqual(expected, self.fates(frames), f"packets {sent} to {sent + batch}")
            if reports:
                self.wait_for_workers(DEPTH, seen + reports)
            sent += batch
            refused += batch - len(expected)
            for port, model in models.items():
                if model.waiting == model.capacity:
                    self.empty(port, model)
        self.assertTrue(PACKETS / 5 < refused < PACKETS * 4 / 5, f"{refused} of {PACKETS} dropped: expected 20 to 80 %")

    def empty(self, port: int, model: Aifo) -> None:
        """Empty the queue: the smallest rank is always admitted, and the report of its departure says that the
        queue is empty."""
        seen = self.workers(DEPTH)
        model.report_every = 1
        self.use_aifo(port, model.capacity, model.size, model.sample, 1, change=True)
        frame = self.packet(0, port)
        self.assertEqual({frame}, self.fates([(frame, port)]))
        assert model.admits(0)
        model.departs(0)
        self.wait_for_workers(DEPTH, seen + 1)
        model.report_every = UNREPORTED
        self.use_aifo(port, model.capacity, model.size, model.sample, UNREPORTED, change=True)


class DropsCountByBand(SchedulerTest):
    """A drop counts by its reason, and by its band of eight ranks."""

    def runTest(self) -> None:
        self.use_aifo(1, 1, report_every=UNREPORTED)  # without limits: only an empty queue admits
        self.assertEqual(1, self.fate(3, self.packet(0, 1)).port)
        for rank in (0, 7, 8, 100, 255, 255):
            self.drops(3, self.packet(rank, 1), "AIFO")
        self.assertEqual({0: 2, 1: 1, 12: 1, 31: 2}, self.bands())


class WorkersReportTheDepth(SchedulerTest):
    """With every departure reported, a queue in which no packet waits never fills, and the largest rank passes."""

    def runTest(self) -> None:
        self.use_aifo(1, 4, window=2)
        for smaller, limit in enumerate((4, 2, 0)):
            self.set_limit(1, smaller, limit)
        for count in range(1, 31):
            frame = self.packet(count % 2 * 255, 1)
            self.passes(3, frame, 1, self.routed(frame, 1))
            self.wait_for_workers(DEPTH, count)


class OneDepartureInEightIsReported(SchedulerTest):
    def runTest(self) -> None:
        self.use_aifo(1, 100, report_every=8)
        for smaller in range(21):
            self.set_limit(1, smaller, 100)
        for count in range(1, 33):
            frame = self.packet(3, 1)
            self.passes(3, frame, 1, self.routed(frame, 1))
            self.wait_for_workers(DEPTH, count // 8)


class NoWorkersWithoutCloneSession(SchedulerTest):
    """Without the clone session no departure is reported, and forwarding does not change."""

    def runTest(self) -> None:
        self.remove_session()
        self.use_aifo(1, 5, window=1)
        self.set_limit(1, 0, 2)
        for _ in range(3):
            frame = self.packet(9, 1)
            self.passes(3, frame, 1, self.routed(frame, 1))
        self.drops(3, self.packet(9, 1), "AIFO")
        self.assertEqual(0, self.workers(DEPTH))


class RanksComeFromCookies(SchedulerTest):
    """Every switch on the way reads ranks from servers' cookies, over TCP and QUIC. Other packets, and all packets
    from outside, have the port's default rank. The band of a drop shows which rank the switch read."""

    def runTest(self) -> None:
        self.use_aifo(4, 1, report_every=UNREPORTED, default_rank=200)
        self.assertEqual(4, self.fate(3, self.packet(0, 4)).port)
        cases = [
            (3, self.packet(77, 4), 77),
            (3, self.segment(5, 4), 5),
            (3, self.segment(31, 4), 2 * 31 - 8),
            (3, self.segment(63, 4), 2 * 63 - 8),
            (3, self.segment(31, 4, ck=0), 200),
            (1, self.segment(31, 4, port=1), 200),
        ]
        for port, frame, rank in cases:
            before = self.bands()
            self.drops(port, frame, "AIFO")
            band = {index: count - before.get(index, 0) for index, count in self.bands().items() if count != before.get(index)}
            self.assertEqual({rank >> 3: 1}, band, frame.hex())


class PacketsOfTwoPassesAreScheduledOnce(SchedulerTest):
    """A SYN of a VIP with a load-aware policy passes ingress twice. Three are admitted; if each counted twice, it
    would be two."""

    def runTest(self) -> None:
        rng = random.Random(3)
        server = Server(100, Endpoint(ip_address("10.1.0.16"), 8080))
        vip = Vip(1, VIP4, [server], policy=CCLB4)
        self.site.add_vip(vip)
        self.site.update_tree(vip, SEED, 0, 100)
        self.wait_for_leaf(0, 0xFFFF << 16 | 100)
        self.use_aifo(3, 9, window=1, report_every=UNREPORTED)
        self.set_limit(3, 0, 2)
        for last in (False, False, False, True):
            syn = Flow(random_client(rng, False), VIP4).up("S", linux_syn(1))
            if last:
                self.drops(1, syn, "AIFO")
            else:
                self.goes_to(server, syn, "ASSIGNED_CCLB4")


class EarlierDropsDoNotCount(SchedulerTest):
    """A packet whose TTL expires does not count as queued, and its rank does not enter the window."""

    def runTest(self) -> None:
        self.use_aifo(1, 9, window=1, report_every=UNREPORTED)
        self.set_limit(1, 0, 2)
        stale = Frame(self.packet(0, 1))
        stale.data[21] = 1
        for _ in range(5):
            self.drops(3, stale.with_checksums(), "TTL")
        for _ in range(3):
            frame = self.packet(9, 1)
            self.passes(3, frame, 1, self.routed(frame, 1))
        self.drops(3, self.packet(9, 1), "AIFO")


class PortsWithoutAifoAdmitAll(SchedulerTest):
    """Ports without a scheduler and FIFO ports admit every packet."""

    def runTest(self) -> None:
        self.use_aifo(1, 1, report_every=UNREPORTED)
        self.use(2, "use_fifo", ecn_threshold=5)
        for to in (2, 4):
            for number in range(20):
                frame = self.packet(255, to, number)
                self.passes(3, frame, to, self.routed(frame, to))

# SPDX-License-Identifier: Apache-2.0
"""SP-PIFO: the strict priority of a packet, by its rank and earlier ones (docs/aifo.md)."""

import random

from frontage_ptf.scheduling import NEVER, PUSH_DOWN, SCHEDULER, SchedulerTest
from frontage_ptf.sppifo import SpPifo


class BoundsAgreeWithThePaper(SchedulerTest):
    """Ranks to two ports agree with the reference model, packet by packet. A rank below all bounds causes one worker
    packet. Where registers can be read, they equal the model's bounds."""

    def runTest(self) -> None:
        rng = random.Random(11)
        models = {1: SpPifo(), 2: SpPifo()}
        for port in models:
            self.use(port, "use_sp_pifo", ecn_threshold=NEVER, default_rank=0)
        pushed_down = 0
        for number in range(300):
            port = rng.choice((1, 2))
            rank = rng.randrange(256) if number // 30 % 2 else rng.randrange(60)
            before = list(models[port].bounds)
            models[port].priority(rank)
            pushed_down += rank < before[-1]
            frame = self.packet(rank, port, number)
            self.passes(3, frame, port, self.routed(frame, port))
            self.wait_for_workers(PUSH_DOWN, pushed_down)
            if self.is_softswitch:
                self.assertEqual(models[port].bounds, self.bounds(port), f"rank {rank} on {before}")
        self.assertGreater(pushed_down, 20)

    def bounds(self, port: int) -> list[int]:
        registers = f"{SCHEDULER}sp_pifo.bounds."
        if self.target == "tna":
            pairs = (self.register(f"{registers}pair{i}.bounds", port) for i in range(4))
            return [bound for pair in pairs for bound in (pair >> 16, pair & 0xFFFF)]
        return [self.register(f"{registers}bound{i}.bounds", port) for i in range(8)]


class PacketsWithoutACookieHaveThePortsRank(SchedulerTest):
    """With a default rank below earlier ranks, each packet lowers all bounds."""

    def runTest(self) -> None:
        self.use(1, "use_sp_pifo", ecn_threshold=NEVER, default_rank=10)
        model, pushed_down = SpPifo(), 0
        for rank in range(250, 240, -1):  # raises every bound above the default
            pushed_down += rank < model.bounds[-1]
            model.priority(rank)
            frame = self.packet(rank, 1)
            self.passes(3, frame, 1, self.routed(frame, 1))
            self.wait_for_workers(PUSH_DOWN, pushed_down)  # in BMv2 they arrive after the packet
        plain = self.segment(0, 1, ck=0)
        self.passes(3, plain, 1, self.routed(plain, 1))
        self.wait_for_workers(PUSH_DOWN, pushed_down + 1)

# SPDX-License-Identifier: Apache-2.0
"""Counters, meters and registers of the target, from packets and from the controller."""

import finsy as fy

from frontage_ptf.probe import ProbeTest, probe, word_of

READ, WRITE, RATE, BANDWIDTH, FLOW = range(5)
GREEN, YELLOW, RED = range(3)


class StateTest(ProbeTest):
    program = "state"

    def word(self, frame: bytes) -> int:
        """Return the word in the reply to a probe."""
        return word_of(self.comes_out(frame, 2))


class CountersCount(StateTest):
    """Packets and bytes of each cell; the controller may set them."""

    def runTest(self) -> None:
        for size in (0, 10, 100):
            self.word(probe(READ, 3, payload=bytes(size)))
        self.word(probe(READ, 4))
        self.assertEqual({3: (3, 3 * 22 + 110), 4: (1, 22)}, self.cells())
        data = fy.P4CounterData(packet_count=1000, byte_count=5000)
        self.client.write(~fy.P4CounterEntry("StateIngress.seen", index=3, data=data))
        self.word(probe(READ, 3))
        self.assertEqual((1001, 5022), self.cells()[3])

    def cells(self) -> dict[int, tuple[int, int]]:
        cells = self.client.read(fy.P4CounterEntry("StateIngress.seen"))
        return {cell.index: (cell.packet_count, cell.byte_count) for cell in cells if cell.packet_count}


class DirectCounters(StateTest):
    """Each entry has its own counter, which begins and ends with it."""

    def runTest(self) -> None:
        entry = self.client.entry("StateIngress.flows", {"index": 6}, "color")
        self.client.write(+entry)
        for _ in range(3):
            self.word(probe(FLOW, 6))
        self.word(probe(FLOW, 7))
        self.assertEqual((3, 66), self.counted())
        self.client.write(-self.client.entry("StateIngress.flows", {"index": 6}, "color"))
        self.client.write(+self.client.entry("StateIngress.flows", {"index": 6}, "color"))
        self.assertEqual((0, 0), self.counted())

    def counted(self) -> tuple[int, int]:
        (cell,) = self.client.read(fy.P4DirectCounterEntry("StateIngress.hits"))
        return cell.packet_count, cell.byte_count


class RegistersOverP4Runtime(StateTest):
    """The controller reads what packets write, and packets read what the controller writes, one cell or all."""

    def runTest(self) -> None:
        self.only_on_softswitch("registers over P4Runtime")
        name = "StateIngress.cells"
        self.word(probe(WRITE, 5, word=0xCAFEF00D))
        (cell,) = self.client.read(fy.P4RegisterEntry(name, index=5))
        self.assertEqual(0xCAFEF00D, cell.data)
        self.client.write(~fy.P4RegisterEntry(name, index=6, data=77))
        self.assertEqual(77, self.word(probe(READ, 6)))
        cells = {cell.index: cell.data for cell in self.client.read(fy.P4RegisterEntry(name))}
        self.assertEqual(dict.fromkeys(range(16), 0) | {5: 0xCAFEF00D, 6: 77}, cells)


class RegistersOutOfRange(StateTest):
    """An index beyond the register reads zero and writes nothing."""

    def runTest(self) -> None:
        self.only_on_softswitch("answer to that: it ends")
        self.word(probe(WRITE, 15, word=9))
        self.word(probe(WRITE, 16, word=1))
        self.word(probe(WRITE, 255, word=1))
        self.assertEqual(9, self.word(probe(READ, 15)))
        self.assertEqual(0, self.word(probe(READ, 200)))
        self.assertEqual(0, self.word(probe(READ, 0)))


class MetersColor(StateTest):
    """Without a configuration all packets are green. With one, a burst is green up to its committed size, yellow up
    to its peak size, then red."""

    def doRunTest(self, meter: str, kind: int, unit: int) -> None:
        self.assertEqual([GREEN] * 5, [self.word(probe(kind, 3)) for _ in range(5)])
        config = fy.P4MeterConfig(cir=unit, cburst=4 * unit, pir=unit, pburst=7 * unit)  # rates too low to refill during the test
        self.client.write(~fy.P4MeterEntry(f"StateIngress.{meter}", index=3, config=config))
        colors = [self.word(probe(kind, 3)) for _ in range(10)]
        self.assertEqual([GREEN] * 4 + [YELLOW] * 3 + [RED] * 3, colors)
        self.assertEqual(GREEN, self.word(probe(kind, 4)))
        (cell,) = self.client.read(fy.P4MeterEntry(f"StateIngress.{meter}", index=3))
        self.assertEqual(
            (unit, 4 * unit, unit, 7 * unit), (cell.config.cir, cell.config.cburst, cell.config.pir, cell.config.pburst)
        )

    def runTest(self) -> None:
        self.doRunTest("rate", RATE, 1)
        self.doRunTest("bandwidth", BANDWIDTH, 22)


class DirectMetersColor(StateTest):
    """The meter of an entry is configured with the entry."""

    def runTest(self) -> None:
        entry = self.client.entry("StateIngress.flows", {"index": 2}, "color")
        entry.meter_config = fy.P4MeterConfig(cir=1, cburst=2, pir=1, pburst=3)
        self.client.write(+entry)
        self.assertEqual([GREEN] * 2 + [YELLOW] + [RED] * 2, [self.word(probe(FLOW, 2)) for _ in range(5)])

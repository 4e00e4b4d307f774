# SPDX-License-Identifier: Apache-2.0
"""Packets beyond port-to-port forwarding: packet-in and packet-out, multicast, clones, digests, resubmission."""

import finsy as fy

from frontage_ptf.client import TEST_TIMEOUT
from frontage_ptf.probe import ProbeTest, probe

CPU_PORT = 510
TO_CONTROLLER, MULTICAST, CLONE_INGRESS, LEARN, AROUND, CLONE_EGRESS, PLAIN = range(7)


class StreamsTest(ProbeTest):
    program = "streams"

    def come_out(self, frame: bytes, expected: dict[tuple[int, bytes], int], port: int = 1) -> None:
        """Check that exactly these frames come out, in any order."""
        self.send(port, frame)
        self.assertEqual(expected, dict(self.receive_all(sum(expected.values()))))

    def packet_in(self) -> fy.P4PacketIn:
        return fy.P4PacketIn.decode(self.client.next_message("packet"), self.client.schema)


class PacketIn(StreamsTest):
    """The controller gets the whole frame, with the header's fields as metadata."""

    def runTest(self) -> None:
        for port in (1, 2, 5):
            for size in (0, 1, 46, 1400):
                frame = probe(TO_CONTROLLER, 7 * port, payload=bytes(size))
                self.send(port, frame)
                got = self.packet_in()
                self.assertEqual((frame, port, 7 * port), (got.payload, got["ingress_port"], got["reason"]))


class PacketOut(StreamsTest):
    """The packet leaves by the port in its metadata."""

    def runTest(self) -> None:
        for port in (1, 2, 5):
            frame = probe(PLAIN, payload=b"from the controller")
            self.client.send(fy.P4PacketOut(frame, egress_port=port, padding=0))
            self.assertEqual((port, frame), self.receive(TEST_TIMEOUT))


class MulticastGroups(StreamsTest):
    """Each replica of a group gets a copy with its instance. An unknown group gets none. Changes take effect."""

    def runTest(self) -> None:
        def copies(*replicas: tuple[int, int]) -> dict[tuple[int, bytes], int]:
            return {(port, probe(MULTICAST, 0, 9, instance)): 1 for port, instance in replicas}

        first, second = [(1, 1), (2, 2), (3, 3), (3, 4)], [(4, 9)]
        self.client.write(+group(9, first))
        self.come_out(probe(MULTICAST, 0, 9), copies(*first))
        self.client.write(~group(9, second))
        self.come_out(probe(MULTICAST, 0, 9), copies(*second))
        self.assertEqual([9], [entry.multicast_group_id for entry in self.client.read(fy.P4MulticastGroupEntry())])
        self.client.write(-group(9, second))
        self.is_dropped(probe(MULTICAST, 0, 9), probe(PLAIN))


def group(id: int, replicas: list[tuple[int, int]]) -> fy.P4MulticastGroupEntry:
    return fy.P4MulticastGroupEntry(id, replicas=replicas)


class ClonesOfIngress(StreamsTest):
    """A clone is the packet as it arrived, sent where its session says, and truncated to the session's length."""

    def runTest(self) -> None:
        frame = probe(CLONE_INGRESS, 0, 40, 0xDEADBEEF, bytes(80))
        original = {(2, probe(CLONE_INGRESS, 0, 40, 0, bytes(80))): 1}
        self.come_out(frame, original)  # no session yet
        self.client.write(+fy.P4CloneSessionEntry(40, replicas=[3]))
        self.come_out(frame, original | {(3, frame): 1})
        if self.is_softswitch:  # BMv2 neither changes sessions nor cuts packets
            self.client.write(~fy.P4CloneSessionEntry(40, replicas=[3, 4], packet_length_bytes=30))
            self.come_out(frame, original | {(3, frame[:30]): 1, (4, frame[:30]): 1})
        self.client.write(-fy.P4CloneSessionEntry(40))
        self.come_out(frame, original)


class ClonesOfEgress(StreamsTest):
    """A clone in egress is the packet as it leaves."""

    def runTest(self) -> None:
        self.client.write(+fy.P4CloneSessionEntry(41, replicas=[4]))
        sent = probe(CLONE_EGRESS, 0, 41, 0xDEADBEEF)
        leaves = probe(CLONE_EGRESS, 0, 41, 0)
        self.come_out(sent, {(2, leaves): 1, (4, leaves): 1})


class CloneToTheController(StreamsTest):
    """A session may send to the CPU port."""

    def runTest(self) -> None:
        self.client.write(+fy.P4CloneSessionEntry(42, replicas=[CPU_PORT]))
        frame = probe(CLONE_INGRESS, 1, 42, 5)
        self.send(1, frame)
        message = self.client.next_message("packet")
        self.assertEqual((2, probe(CLONE_INGRESS, 1, 42, 0)), self.receive(TEST_TIMEOUT))
        self.assertEqual(frame[2:], message.packet.payload, "its first bytes are taken for the header of a packet-in")


class Digests(StreamsTest):
    """Each value that the program learns is reported once until it is acknowledged."""

    def runTest(self) -> None:
        digest = next(iter(self.client.schema.digests))
        entry = fy.P4DigestEntry(digest.alias, max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**10)
        self.client.write(+entry)
        frame = probe(LEARN)
        self.comes_out(frame, 2, frame)
        report = fy.P4DigestList.decode(self.client.next_message("digest"), self.client.schema)
        self.assertEqual([{"mac": 0x0200000000AA, "port": 1}], report.data)
        self.comes_out(frame, 2, frame)
        self.comes_out(frame, 2, frame, port=5)
        second = fy.P4DigestList.decode(self.client.next_message("digest"), self.client.schema)
        self.assertEqual([{"mac": 0x0200000000AA, "port": 5}], second.data, "the first was not acknowledged: not again")
        self.client.send(report.ack())
        self.client.send(second.ack())
        self.comes_out(probe(PLAIN), 2)


class Resubmission(StreamsTest):
    """A packet may pass ingress again and keep the fields of its field list."""

    def runTest(self) -> None:
        for rounds in (0, 1, 3):
            self.comes_out(probe(AROUND, rounds), 2, probe(AROUND, rounds, rounds))

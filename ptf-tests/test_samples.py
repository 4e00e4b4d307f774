# SPDX-License-Identifier: Apache-2.0
"""Samples: one packet in N of a port, dropped packets at a limited rate, and postcards (docs/samples.md)."""

import math
import zlib

import finsy as fy

from frontage_ptf.balancer import BalancerTest
from frontage_ptf.client import TEST_TIMEOUT
from frontage_ptf.names import DROPS, OUTCOMES
from frontage_ptf.packets import PORT_MAC, linux_syn, stamped
from frontage_ptf.site import CCLB4, HASH, INGRESS, ROLES, Vip

CPU_PORT = 510
SESSION = 32767
"""The clone session of samples."""
SAMPLE_BYTES = 128
FLOW, DROP, POSTCARD = 1, 2, 3


def drawn(pool: int, port: int) -> int:
    """Return the number that the switch draws for a packet: `pool` packets of the port came before."""
    return zlib.crc32((pool * 0x9E3779B1 & 0xFFFFFFFF).to_bytes(4, "big") + port.to_bytes(2, "big"))


class SamplesTest(BalancerTest):
    """A VIP, and a session that leads samples to the controller."""

    control = "drop_samples"
    has_session = True

    def setUp(self) -> None:
        super().setUp()
        if self.has_session:
            self.client.write(+fy.P4CloneSessionEntry(SESSION, packet_length_bytes=0, replicas=[CPU_PORT]))
            # BMv2 keeps the replicas of sessions when it gets a new program.
            self.addCleanup(self.client.write, -fy.P4CloneSessionEntry(SESSION))

    def sample_port(self, port: int, one_in: int, postcards: int = 0) -> None:
        entry = self.site.entry(
            f"{INGRESS}ports.port",
            {"ingress_port": port},
            "set_sampled_port",
            role=ROLES[port],
            mac=PORT_MAC[port],
            threshold=min(2**32 // one_in, 2**32 - 1),
            postcards=postcards,
        )
        self.site.modify(entry)

    def report_drops(self, reason: str, burst: int) -> None:
        """Report this many dropped packets: a meter with the rate 0 never refills."""
        number = next(number for number, name in DROPS.items() if name == reason)
        entry = self.site.entry(f"{INGRESS}drop_samples.reason", {"reason": number}, "report")
        entry.meter_config = fy.P4MeterConfig(cir=0, cburst=burst, pir=0, pburst=burst)
        self.site.insert([entry])

    def sample(self, seconds: float = TEST_TIMEOUT) -> fy.P4PacketIn:
        return fy.P4PacketIn.decode(self.client.next_message("packet", seconds), self.client.schema)

    def no_sample(self) -> None:
        with self.assertRaises(AssertionError):
            self.sample(0.2)

    def data(self, vip: Vip, size: int) -> bytes:
        """Return a packet of a new connection of the client."""
        return self.new_flow(vip).up("PA", stamped(8, 5), bytes(size))


class OnePacketInNIsSampled(SamplesTest):
    """The samples of 2,000 packets are those that the draws choose, which is one in N within 4 standard deviations."""

    def runTest(self) -> None:
        (vip, *_) = self.tcp_vips(HASH)
        one_in, count = 20, 2000
        self.sample_port(1, one_in)
        chosen = [number for number in range(count) if drawn(number, 1) < 2**32 // one_in]
        expected = count / one_in
        self.assertLess(abs(len(chosen) - expected), 4 * math.sqrt(expected * (1 - 1 / one_in)))
        frame = self.data(vip, 10)
        for number in range(count):
            self.send(1, frame)
            if number % 50 == 49:
                self.receive_all(50)
        self.assertEqual([number + 1 for number in chosen], [self.sample()["pool"] for _ in chosen])
        self.no_sample()


class SamplesHaveThePacketAndItsFate(SamplesTest):
    """A sample has the first 128 bytes of the packet as it arrived, its ports, VIP, server and outcome."""

    def runTest(self) -> None:
        for vip in self.tcp_vips(HASH):
            self.sample_port(1, 1)
            for size in (0, 40, 1000):
                frame = self.data(vip, size)
                server = self.server_of(frame, vip)
                found = self.sample()
                self.assertEqual(frame[:SAMPLE_BYTES].hex(), found.payload.hex())
                expected = {"kind": FLOW, "reason": 0, "direction": 1, "ingress_port": 1, "vip_id": vip.id, "length": len(frame)}
                self.assertEqual(expected | {"sid": server.sid}, {name: found[name] for name in (*expected, "sid")})
                self.assertIn(found["egress_port"], (3, 4))
                self.assertEqual("HASHED_BAD_COOKIE", OUTCOMES[found["outcome"]])


class DroppedPacketsAreSampledAtTheRateOfTheirReason(SamplesTest):
    """As many packets as the meter of the reason permits. Reasons without an entry are not reported."""

    def runTest(self) -> None:
        (vip, *_) = self.tcp_vips(HASH)
        flow = self.new_flow(vip)
        self.report_drops("TCP_FLAGS", 3)
        for _ in range(5):
            self.drops(1, flow.up("", linux_syn(1)), "TCP_FLAGS")
        self.drops(5, flow.up("S", linux_syn(1)), "PORT_UNKNOWN")
        for _ in range(3):
            found = self.sample()
            self.assertEqual((DROP, "TCP_FLAGS"), (found["kind"], DROPS[found["reason"]]))
            self.assertEqual((1, 0), (found["ingress_port"], found["egress_port"]))
            self.assertEqual(flow.up("", linux_syn(1))[:SAMPLE_BYTES], found.payload)
        self.no_sample()
        self.report_drops("PORT_UNKNOWN", 10)
        self.drops(5, flow.up("S", linux_syn(1)), "PORT_UNKNOWN")
        found = self.sample()
        self.assertEqual(("PORT_UNKNOWN", 5), (DROPS[found["reason"]], found["ingress_port"]))


class PostcardsHaveTheQueueAndTheLatency(SamplesTest):
    """A sampled packet of a port with postcards sends a second sample: the packet as it leaves, with its hop's metadata."""

    def runTest(self) -> None:
        (vip, *_) = self.tcp_vips(HASH)
        self.sample_port(1, 1, postcards=1)
        fate = self.fate(1, self.data(vip, 300))
        kinds = {found["kind"]: found for found in (self.sample(), self.sample())}
        self.assertEqual({FLOW, POSTCARD}, set(kinds))
        postcard = kinds[POSTCARD]
        self.assertEqual(fate.frame[:SAMPLE_BYTES].hex(), postcard.payload.hex())
        self.assertEqual((1, fate.port, vip.id), (postcard["ingress_port"], postcard["egress_port"], postcard["vip_id"]))
        self.assertEqual(kinds[FLOW]["pool"], postcard["pool"])
        self.assertEqual(0, postcard["queue_depth"])
        self.assertLess(postcard["hop_latency"], 10_000_000)
        self.assertEqual(0, kinds[FLOW]["hop_latency"])


class WithoutSessionNothingIsSampled(SamplesTest):
    """A switch whose controller does not want samples forwards and drops as ever."""

    has_session = False

    def runTest(self) -> None:
        (vip, *_) = self.tcp_vips(HASH)
        self.sample_port(1, 1, postcards=1)
        self.report_drops("TCP_FLAGS", 3)
        self.server_of(self.data(vip, 10), vip)
        self.drops(1, self.new_flow(vip).up("", linux_syn(1)), "TCP_FLAGS")
        self.no_sample()


class ResubmittedPacketsAreSampledOnce(SamplesTest):
    """A packet that takes two passes through ingress counts once, and the sample has the outcome of the second pass."""

    def runTest(self) -> None:
        vip = self.make_vip(2, policy=CCLB4)
        self.seed(vip, *vip.servers)
        self.sample_port(1, 1)
        for number in range(5):
            _, server = self.begin(vip)
            found = self.sample()
            expected = ("ASSIGNED_CCLB4", server.sid, number + 1)
            self.assertEqual(expected, (OUTCOMES[found["outcome"]], found["sid"], found["pool"]))

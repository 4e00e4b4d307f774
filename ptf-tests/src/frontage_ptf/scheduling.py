# SPDX-License-Identifier: Apache-2.0
"""Test case for the schedulers: ports with a discipline, and packets of servers with every rank."""

import time
from collections import Counter
from fractions import Fraction
from ipaddress import IPv6Address, ip_address

import finsy as fy
from scapy.all import UDP as Udp
from scapy.all import Raw

from frontage_ptf.client import TEST_TIMEOUT
from frontage_ptf.cookie import dynamic_tsval
from frontage_ptf.frame import Frame
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, Flow, ethernet, layer3, stamped
from frontage_ptf.site import INGRESS
from frontage_ptf.switch import KEY, WORKER_SESSION, FrontageTest

SCHEDULER = INGRESS + "scheduler."
CPU_PORT = 510  # without a queue
NEVER = (1 << 19) - 1  # ECN threshold: a queue is never that long
DEPTH, PUSH_DOWN = 2, 3  # disciplines of worker packets: AIFO, SP-PIFO
UNREPORTED = 1 << 15  # departures for each report: more than most tests have
CLIENTS = {1: ip_address("2001:db8:1::7"), 2: ip_address("2001:db8:2::7"), 4: ip_address("fd12:3456:b::7")}
PREFIX = int(ip_address("fd12:3456:a:5::")) >> 64  # of a server behind port 3


class SchedulerTest(FrontageTest):
    control = "scheduler.aifo"

    def setUp(self) -> None:
        super().setUp()
        if self.target != "tna":  # which always has the session
            self.client.write(+fy.P4CloneSessionEntry(WORKER_SESSION, replicas=[CPU_PORT]))
        self.has_session = True
        self.site.install_quic_key(KEY)

    def tearDown(self) -> None:
        self.remove_session()  # BMv2 keeps clone sessions when it gets a new program
        super().tearDown()

    def remove_session(self) -> None:
        if self.has_session:
            self.client.write(-fy.P4CloneSessionEntry(WORKER_SESSION))
            self.has_session = False

    def use(self, port: int, action: str, *, change: bool = False, **params: int) -> None:
        """Set the discipline of a port."""
        control = self.client.program.control("scheduler")
        entry = self.site.entry(f"{control}port", {"egress_port": port}, action, **params)
        self.client.write(~entry if change else +entry)

    def use_aifo(
        self,
        port: int,
        capacity: int,
        window: int = 20,
        sample: int = 1,
        report_every: int = 1,
        default_rank: int = 0,
        *,
        change: bool = False,
    ) -> None:
        params = {"window": window, "sample_interval": sample, "capacity": capacity, "report_mask": report_every - 1}
        self.use(port, "use_aifo", change=change, ecn_threshold=NEVER, default_rank=default_rank, **params)

    def set_limits(self, port: int, capacity: int, window: int, k: Fraction) -> None:
        """Install the largest admitted depth for each number of smaller ranks, found by trying the paper's own
        condition."""
        for smaller in range(window + 1):
            quantile = Fraction(smaller, window)
            passing = [
                c for c in range(capacity + 1) if c <= k * capacity or quantile <= 1 / (1 - k) * Fraction(capacity - c, capacity)
            ]
            self.set_limit(port, smaller, max(passing))

    def set_limit(self, port: int, smaller: int, limit: int) -> None:
        match = {"egress_port": port, "smaller_ranks": smaller}
        self.site.insert([self.site.entry(SCHEDULER + "aifo.limit", match, "set_limit", limit=limit)])

    def packet(self, rank: int, to: int, number: int = 0) -> bytes:
        """Return a server's QUIC packet in transit to port `to`, with this rank in its dynamic cookie and a number
        that identifies it."""
        source = IPv6Address(PREFIX << 64 | KEY.dynamic6(7, rank))
        payload = b"\x40" + number.to_bytes(8, "big") + bytes(11)
        udp = Udp(sport=443, dport=50000, len=8 + len(payload), chksum=0xFFFF) / Raw(payload)
        return Frame(bytes(ethernet(3) / layer3(source, CLIENTS[to], first=17) / udp)).with_checksums()

    def segment(self, code: int, to: int, ck: int = 1, port: int = 3) -> bytes:
        """Return a TCP packet in transit, with TCP's code of a rank in its timestamp."""
        server = Endpoint(ip_address("fd12:3456:a::10"), 80)
        flow = Flow(Endpoint(CLIENTS[to], 50000), Endpoint(ip_address("2001:db8:f::99"), 80))
        return flow.down(server, options=stamped(dynamic_tsval(7, code, 3, 2), 5), ck=ck, port=port)

    def routed(self, frame: bytes, to: int) -> bytes:
        return Frame(frame).rewritten((PORT_MAC[to], NEIGHBOR_MAC[to]))

    def fates(self, frames: list[tuple[bytes, int]]) -> set[bytes]:
        """Send packets by port 3 back to back, and return those that came out, in their original form. AIFO dropped
        the others."""
        expected = {(to, self.routed(frame, to)): frame for frame, to in frames}
        refused = self.refused()
        for frame, _ in frames:
            self.send(3, frame)
        admitted: set[bytes] = set()
        end = time.monotonic() + TEST_TIMEOUT
        while len(admitted) + self.refused() - refused < len(frames):
            assert time.monotonic() < end, f"{len(admitted)} came out, {self.refused() - refused} were dropped, of {len(frames)}"
            while (found := self.receive(0.005)) is not None:
                admitted.add(expected[found])
        return admitted

    def refused(self) -> int:
        return self.dropped_so_far().get(29, 0)

    def bands(self) -> dict[int, int]:
        return self.client.counter(SCHEDULER + "aifo.refusals.refusals")

    def workers(self, op: int) -> int:
        return Counter(self.client.counter("FrontageIngress.workers"))[op]

    def wait_for_workers(self, op: int, count: int) -> None:
        end = time.monotonic() + TEST_TIMEOUT
        while self.workers(op) != count:
            self.assertLess(time.monotonic(), end, f"{self.workers(op)} worker packets arrived, expected {count}")

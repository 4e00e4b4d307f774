# SPDX-License-Identifier: Apache-2.0
"""ECN marks on packets that found at least the port's threshold in the queue. The queues are empty: threshold 0
marks, 1 does not."""

from ipaddress import ip_address

from frontage_ptf.balancer import VIP4, VIP6
from frontage_ptf.frame import Frame
from frontage_ptf.packets import Endpoint, Flow, stamped
from frontage_ptf.scheduling import CLIENTS, SchedulerTest
from frontage_ptf.site import HASH, Server, Vip

NOT_ECT, ECT1, ECT0, CE = range(4)
CLIENTS4 = {1: ip_address("198.51.100.7"), 2: ip_address("203.0.113.7")}


def with_ecn(frame: bytes, ecn: int, dscp: int = 0b101110) -> bytes:
    """Return the frame with these ECN bits, next to a DSCP."""
    new = Frame(frame)
    tos = dscp << 2 | ecn
    if new.ipv6:
        new.data[14:16] = bytes([6 << 4 | tos >> 4, (tos & 15) << 4 | new.data[15] & 15])
    else:
        new.data[15] = tos
    return new.with_checksums()


class MarkTest(SchedulerTest):
    control = "scheduler"

    def setUp(self) -> None:
        super().setUp()
        self.use(1, "use_fifo", ecn_threshold=0)
        self.use(2, "use_fifo", ecn_threshold=1)


class QueuesMarkFromTheirThreshold(MarkTest):
    """Transit over IPv4 and IPv6: only the mark changes, and checksums are correct."""

    def runTest(self) -> None:
        for ecn in (NOT_ECT, ECT1, ECT0, CE):
            for to in (1, 2):
                for client in (CLIENTS4[to], CLIENTS[to]):
                    server = ip_address("10.1.0.16" if client.version == 4 else "fd12:3456:a::10")
                    flow = Flow(Endpoint(client, 50000), Endpoint(server, 80))
                    frame = with_ecn(flow.down(Endpoint(server, 80), options=stamped(1, 2)), ecn)
                    marked = CE if to == 1 and ecn != NOT_ECT else ecn
                    with self.subTest(ecn=ecn, to=to, version=client.version):
                        self.passes(3, frame, to, with_ecn(self.routed(frame, to), marked))


class MarksSurviveMasking(MarkTest):
    """A server's packet gets the VIP's address and the mark at the same time."""

    def runTest(self) -> None:
        cases = [(1, VIP4, "10.1.0.16", CLIENTS4[1]), (2, VIP6, "fd12:3456:a::10", CLIENTS[1])]
        for id, at, dip, client in cases:
            server = Server(100 + id, Endpoint(ip_address(dip), 8080))
            self.site.add_vip(Vip(id, at, [server], policy=HASH))
            frame = with_ecn(Flow(Endpoint(client, 50000), at).down(server.dip, options=stamped(1, 2)), ECT0)
            macs = Frame(self.routed(frame, 1))
            expected = Frame(bytes(macs.data)).rewritten(src=(at.address, at.port), hops=0)
            self.passes(3, frame, 1, with_ecn(expected, CE), "NO_INSIGHT")


class EverySchedulerMarks(MarkTest):
    control = "scheduler.aifo"

    def runTest(self) -> None:
        self.use(1, "use_sp_pifo", change=True, ecn_threshold=0, default_rank=0)
        params = {"default_rank": 0, "window": 1, "sample_interval": 1, "capacity": 9, "report_mask": 0}
        self.use(2, "use_aifo", change=True, ecn_threshold=0, **params)
        for to in (1, 2):
            frame = with_ecn(self.packet(1, to), ECT1)
            self.passes(3, frame, to, with_ecn(self.routed(frame, to), CE))

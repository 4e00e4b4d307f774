# SPDX-License-Identifier: Apache-2.0
"""The second hop: TCP packets of connections without a cookie that the switch does not know, and whose slot of Maglev's
table had another server before."""

from frontage_ptf.balancer import VIP6, BalancerTest
from frontage_ptf.frame import Frame
from frontage_ptf.names import CLAIMS
from frontage_ptf.packets import Flow, random_client, stamped
from frontage_ptf.site import Server, Vip, port_of
from frontage_ptf.switch import to_server


class SecondHopTest(BalancerTest):
    """A VIP with four servers, and a table of Maglev with four slots."""

    control = "cclb4.second_hop"

    def setUp(self) -> None:
        super().setUp()
        self.vip = self.make_vip(4)

    def others(self, flow: Flow, *servers: Server, vip: Vip | None = None) -> None:
        vip = vip or self.vip
        self.site.set_others(vip, flow.hash & (vip.maglev_size - 1), *(server.sid for server in servers))

    def slot_owner(self, flow: Flow, vip: Vip | None = None) -> Server:
        return (vip or self.vip).servers[flow.hash & 3]

    def rest(self, server: Server, vip: Vip | None = None) -> list[Server]:
        return [other for other in (vip or self.vip).servers if other != server]

    def refused(self, frame: bytes, server: Server) -> bytes:
        """Return a client's frame as `server` sends it back."""
        return Frame(to_server(frame, server, second_hop=1)).refused()

    def refuses(self, server: Server, frame: bytes, next_server: Server, second_hop: int) -> None:
        """Check that a client's frame which `server` refuses reaches `next_server`, with or without the mark."""
        expected = Frame(to_server(frame, next_server, second_hop)).rewritten()
        ports = port_of(server.dip.address), port_of(next_server.dip.address)
        self.passes(ports[0], self.refused(frame, server), ports[1], expected, "SECOND_HOP")


class PacketVisitsServersInOrder(SecondHopTest):
    """Each server may refuse the packet except the last one. The connection table keeps the last server."""

    def runTest(self) -> None:
        vip6 = self.make_vip(4, 2, VIP6, base=4, first_sid=200)
        for vip in (self.vip, vip6):
            flow = self.new_flow(vip)
            one = self.slot_owner(flow, vip)
            two, three, four = self.rest(one, vip)
            self.others(flow, two, three, four, vip=vip)
            frame = flow.up("A")
            self.goes_to(one, frame, "HASHED_NO_COOKIE", second_hop=1)
            self.refuses(one, frame, two, 1)
            # The next packet overtakes the one that this server refuses, too.
            self.goes_to(two, frame, "RETRIEVED_TABLE", second_hop=1)
            self.refuses(two, frame, three, 1)
            self.refuses(two, frame, three, 1)
            self.refuses(three, frame, four, 0)
            for flags in ("A", "PA", "FA", "R"):
                self.goes_to(four, flow.up(flags), "RETRIEVED_TABLE", second_hop=1)
            # The connection is gone: the server of the hash resets it.
            self.refuses(four, frame, one, 0)


class LastServerIsNotAsked(SecondHopTest):
    """With one other server, only the server of the hash may refuse."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        one = self.slot_owner(flow)
        two, *_ = self.rest(one)
        self.others(flow, two)
        frame = flow.up("PA", b"", b"data")
        self.goes_to(one, frame, "HASHED_NO_COOKIE", second_hop=1)
        self.refuses(one, frame, two, 0)
        self.goes_to(two, flow.up("PA", b"", b"more"), "RETRIEVED_TABLE", second_hop=1)


class OnlyMovedSlotsAreMarked(SecondHopTest):
    """A connection of another slot, and a SYN, reach their servers without the mark."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        one = self.slot_owner(flow)
        self.others(flow, *self.rest(one)[:2])
        elsewhere = next(f for f in iter(lambda: self.new_flow(self.vip), None) if self.slot_owner(f) != one)
        self.goes_to(self.slot_owner(elsewhere), elsewhere.up("A"), "HASHED_NO_COOKIE")
        self.goes_to(one, flow.up("S"), "ASSIGNED_FALLBACK")
        self.goes_to(one, flow.up("A"), "RETRIEVED_TABLE", second_hop=1)


class PacketsWithTimestampsAreNotMarked(SecondHopTest):
    """The cookie names their server; those of a server without an agent go by the hash alone."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        one = self.slot_owner(flow)
        self.others(flow, *self.rest(one)[:2])
        self.goes_to(one, flow.up("A", stamped(1, 2)), "HASHED_BAD_COOKIE")
        server = self.rest(one)[0]
        self.goes_to(server, flow.up("A", self.echoed(flow, server)), "RETRIEVED_COOKIE")


class MarkOfClientsIsCleared(SecondHopTest):
    """A client cannot let a server send its packets back."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        for flags, outcome in (("S", "ASSIGNED_FALLBACK"), ("A", "RETRIEVED_TABLE")):
            self.goes_to(self.slot_owner(flow), Frame(flow.up(flags)).rewritten(second_hop=1, hops=0), outcome, second_hop=0)


class DrainingServersKeepConnections(SecondHopTest):
    """If no server is active, the hash names none. Connections still reach the servers that drain, and new ones do not."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        one, two, *_ = self.vip.servers
        self.site.delete(*self.site.maglev(self.vip, [0] * self.vip.maglev_size))
        self.drops(1, flow.up("A"), "VIP_NO_SERVER")
        self.others(flow, one, two)
        self.drops(1, flow.up("S"), "VIP_NO_SERVER")
        frame = flow.up("A")
        self.goes_to(one, frame, "HASHED_NO_COOKIE", second_hop=1)
        self.refuses(one, frame, two, 0)
        self.goes_to(two, frame, "RETRIEVED_TABLE", second_hop=1)


class RefusalsOfSynsAreDropped(SecondHopTest):
    """No switch marks a SYN, so a server that refuses one would open a connection in a client's name."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        one = self.slot_owner(flow)
        self.others(flow, *self.rest(one)[:1])
        self.drops(3, self.refused(flow.up("S"), one), "REFUSED_SYN")
        self.drops(3, self.refused(flow.up("SA"), one), "REFUSED_SYN")


class RefusalsOfClientsAreDropped(SecondHopTest):
    """Only a packet from a server's port can be a refusal."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        one = self.slot_owner(flow)
        two, *_ = self.rest(one)
        self.others(flow, two)
        refused = bytearray(self.refused(flow.up("A"), one))
        refused[0:6] = flow.up("A")[0:6]
        self.drops(1, bytes(refused), "SPOOFED_SOURCE")
        self.goes_to(one, flow.up("A"), "HASHED_NO_COOKIE", second_hop=1)


class RefusalAfterChangeOfTheTable(SecondHopTest):
    """A packet was marked before the slot changed: the servers that its server does not precede get it, too."""

    def runTest(self) -> None:
        flow = self.new_flow(self.vip)
        one = self.slot_owner(flow)
        two, three, four = self.rest(one)
        frame = flow.up("A")
        self.refuses(two, frame, one, 0)  # the slot has no other servers
        self.others(flow, two, three)
        self.refuses(four, frame, two, 1)
        self.refuses(two, frame, three, 0)
        self.refuses(three, frame, one, 0)


class RefusedPacketsNeedNoEntry(SecondHopTest):
    """If another connection has the entry, each packet takes both hops."""

    def runTest(self) -> None:
        owner, late = self.colliding_pair()
        self.goes_to(self.slot_owner(owner), owner.up("S"), "ASSIGNED_FALLBACK")
        one = self.slot_owner(late)
        two, *_ = self.rest(one)
        self.others(late, two)
        for _ in range(3):
            frame = late.up("A")
            self.goes_to(one, frame, "HASHED_NO_COOKIE", second_hop=1)
            self.refuses(one, frame, two, 0)
        claims = self.client.counter("FrontageIngress.cclb4.fallback.claims.claims")
        self.assertEqual({"TAKEN": 1, "REFUSED": 3}, {CLAIMS[kind]: count for kind, count in claims.items()})

    def colliding_pair(self) -> tuple[Flow, Flow]:
        """Return two connections with the same index in the connection table."""
        seen: dict[int, Flow] = {}
        while True:
            flow = Flow(random_client(self.rng, False), self.vip.at)
            other = seen.setdefault(flow.table_index, flow)
            if other != flow and other.hash != flow.hash:
                return other, flow

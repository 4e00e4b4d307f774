# SPDX-License-Identifier: Apache-2.0
"""First packets of QUIC connections: the VIP's policy assigns them like a SYN, and the handshake table keeps the
server."""

import time

from frontage_ptf.balancer import TCP_CONTROL, VIP4
from frontage_ptf.packets import Flow, random_client
from frontage_ptf.quic import INITIAL, QUIC4, QUIC6, Conversation, QuicTest, long, short
from frontage_ptf.site import CCLB4, CHEETAH_RR, HASH, Server, Vip

TIMEOUT = 1  # ticks of 2^20 us, or of 2^30 ns on Tofino
# An entry stays alive for TIMEOUT ticks and a fraction of the next one.
EXPIRED = (TIMEOUT + 1) * 1.08 + 0.5
ASSIGNED = {HASH: "ASSIGNED_HASH", CHEETAH_RR: "ASSIGNED_RR", CCLB4: "ASSIGNED_CCLB4"}


class AssignTest(QuicTest):
    def begin_quic(self, vip: Vip, server: Server, outcome: str) -> Conversation:
        """Check that a first Initial reaches `server`."""
        conversation = self.new_conversation(vip)
        self.goes_to(server, conversation.datagram(long(self.foreign_cid())), outcome)
        return conversation

    def rest_of_handshake(self, conversation: Conversation, server: Server) -> None:
        """Return all packets that a client may send before it uses the server's connection id."""
        first = self.foreign_cid()
        packets = {
            "a second Initial": long(first),
            "a retransmission": long(first),
            "0-RTT in a packet of its own": long(first, first=0xD0, size=900),
            "Initial and 0-RTT coalesced": long(first, size=700) + long(first, first=0xD0, size=500),
            "Handshake": long(self.foreign_cid(12), first=0xE0, size=80),
            "after Retry, another id": long(self.foreign_cid(20)),
            "id of no length": long(b""),
            "a short header with a foreign id": short(self.foreign_cid(20)),
        }
        for name, payload in packets.items():
            with self.subTest(name):
                self.goes_to(server, conversation.datagram(payload), "RETRIEVED_HANDSHAKE")


class RoundRobin(AssignTest):
    """Handshakes take turns; further packets of a handshake take none."""

    def runTest(self) -> None:
        self.skip_without("cclb4.assign")
        for id, at in ((7, QUIC6), (8, QUIC4)):
            vip = self.make_quic(3, id, at, CHEETAH_RR, base=16 * id, first_sid=100 * id)
            self.site.set_pool(vip, [server.sid for server in vip.servers])
            self.site.update_policy(vip)
            for turn in range(7):
                server = vip.servers[turn % 3]
                conversation = self.begin_quic(vip, server, "ASSIGNED_RR")
                self.rest_of_handshake(conversation, server)
        self.assertEqual({"TAKEN": 14}, self.claims())


class HashPolicyIsKept(AssignTest):
    """Maglev chooses, and the table keeps the server when Maglev would choose another one."""

    def runTest(self) -> None:
        for id, at in ((7, QUIC6), (8, QUIC4)):
            vip = self.make_quic(4, id, at, HASH, base=16 * id, first_sid=100 * id)
            for _ in range(8):
                conversation = self.new_conversation(vip)
                server = vip.servers[conversation.hash & 3]
                self.goes_to(server, conversation.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
                others = [other.sid for other in vip.servers if other != server]
                self.site.set_maglev(vip, [others[i % 3] for i in range(4)])
                self.rest_of_handshake(conversation, server)
                self.site.set_maglev(vip, [other.sid for other in vip.servers])


class LeastLoaded(AssignTest):
    """The server with the lowest score, by loads of the IPv6 carrier. Until its next report a handshake counts as
    one flow."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_quic(5)
        for server, load in zip(vip.servers, (9, 3, 200, 40, 3), strict=True):
            told = self.load(vip, server, load, load)
            self.leaves.report(server.slot, server.sid, min(0xFFFF, 2 * self.score_of(load)), told.hash)
        for _ in range(24):
            conversation = self.new_conversation(vip)
            self.wait_for_root(vip)
            sid = self.leaves.best(vip, conversation.hash)
            assert sid is not None
            server = vip.server(sid)
            self.goes_to(server, conversation.datagram(long(self.foreign_cid())), "ASSIGNED_CCLB4")
            self.leaves.add(server.slot, sid, vip.flow_unit, conversation.hash)
            self.goes_to(server, conversation.datagram(long(self.foreign_cid())), "RETRIEVED_HANDSHAKE")

    def score_of(self, code: int) -> int:
        """Return half of a load, as the tables hold it."""
        value = code if code < 8 else (8 + code % 8) << (code // 8 - 1)
        return min(0xFFFE, value * 8)


class EmptyTreeFallsBackToMaglev(AssignTest):
    """With an empty tree the hash assigns, and the handshake table keeps the server."""

    def runTest(self) -> None:
        vip = self.make_quic(4)
        conversation = self.new_conversation(vip)
        server = vip.servers[conversation.hash & 3]
        self.goes_to(server, conversation.datagram(long(self.foreign_cid())), "ASSIGNED_NO_LOAD")
        self.rest_of_handshake(conversation, server)


class ConcurrentInitialsReachOneServer(AssignTest):
    """Initials of one client that overtake each other between the two passes reach one server."""

    def runTest(self) -> None:
        self.skip_without("cclb4.assign")
        vip = self.make_quic(8, policy=CHEETAH_RR)
        self.site.set_pool(vip, [server.sid for server in vip.servers])
        self.site.update_policy(vip)
        for _ in range(20):
            conversation = self.new_conversation(vip)
            frames = [conversation.datagram(long(self.foreign_cid())) for _ in range(6)]
            for frame in frames:
                self.send(1, frame)
            came = self.receive_all(len(frames))
            self.assertEqual(1, len({frame[38:54] for _, frame in came}), "more than one server")


class AnyVersionIsServed(AssignTest):
    """Any QUIC version, known or unknown, with any version-specific bits."""

    def runTest(self) -> None:
        vip = self.make_quic(4, policy=HASH)
        for version in (0, 1, 0x6B3343CF, 0x0A0A0A0A, 0xFF00001D, 0xFFFFFFFF):
            for first in (0x80, 0xC0, 0xFF):
                conversation = self.new_conversation(vip)
                server = vip.servers[conversation.hash & 3]
                payload = long(self.foreign_cid(), version=version, first=first)
                self.goes_to(server, conversation.datagram(payload), "ASSIGNED_HASH")
                self.goes_to(server, conversation.datagram(payload), "RETRIEVED_HANDSHAKE")


class AnyConnectionIdLengthIsServed(AssignTest):
    """Up to the 255 bytes that RFC 8999 allows, also beyond the maximum of version 1."""

    def runTest(self) -> None:
        vip = self.make_quic(4, policy=HASH)
        for length in range(256):
            conversation = self.new_conversation(vip)
            server = vip.servers[conversation.hash & 3]
            self.goes_to(server, conversation.datagram(long(self.foreign_cid(length))), "ASSIGNED_HASH")


class SmallDatagramsBeginNothing(AssignTest):
    """A datagram below 1200 bytes cannot hold an Initial: it begins no handshake and claims no entry."""

    def runTest(self) -> None:
        for id, at in ((7, QUIC6), (8, QUIC4)):
            vip = self.make_quic(4, id, at, HASH, base=16 * id, first_sid=100 * id)
            conversation = self.new_conversation(vip)
            server = vip.servers[conversation.hash & 3]
            for size in (30, 80, 600, INITIAL - 1):
                self.drops(1, conversation.datagram(long(self.foreign_cid(), size=size)), "QUIC_SMALL")
            self.assertEqual(id - 7, self.claims().get("TAKEN", 0))
            self.goes_to(server, conversation.datagram(long(self.foreign_cid(), size=INITIAL)), "ASSIGNED_HASH")
            self.goes_to(server, conversation.datagram(long(self.foreign_cid(), size=80)), "RETRIEVED_HANDSHAKE")


class HandshakesExpire(AssignTest):
    """After the timeout the client is unknown. Until then each of its packets refreshes the entry."""

    timeout = TIMEOUT

    def runTest(self) -> None:
        vip = self.make_quic(4, policy=HASH)
        quiet, busy = self.new_conversation(vip), self.new_conversation(vip)
        one, two, *_ = vip.servers
        self.site.set_maglev(vip, [one.sid] * 4)
        for conversation in (quiet, busy):
            self.goes_to(one, conversation.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        self.site.set_maglev(vip, [two.sid] * 4)
        end = time.monotonic() + EXPIRED
        while time.monotonic() < end:
            self.goes_to(one, busy.datagram(long(self.foreign_cid(), size=100)), "RETRIEVED_HANDSHAKE")
            time.sleep(0.1)
        self.drops(1, quiet.datagram(long(self.foreign_cid(), size=100)), "QUIC_SMALL")
        self.drops(1, quiet.datagram(short(self.foreign_cid())), "QUIC_NO_CONNECTION")
        self.goes_to(two, quiet.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        self.assertEqual({"TAKEN": 3}, self.claims())


class LiveHandshakesAreNotEvicted(AssignTest):
    """A new handshake never replaces a live one: the hash serves each packet of the new one, and the claims count
    this."""

    def runTest(self) -> None:
        vip = self.make_quic(4, policy=HASH)
        self.site.set_maglev(vip, [vip.servers[0].sid] * 4)
        owner, late = self.colliding_pair(vip)
        self.goes_to(vip.servers[0], owner.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        self.site.set_maglev(vip, [server.sid for server in vip.servers])
        hashed = vip.servers[late.hash & 3]
        for _ in range(3):
            self.goes_to(hashed, late.datagram(long(self.foreign_cid())), "HASHED_HANDSHAKE")
        self.assertEqual({"TAKEN": 1, "REFUSED": 3}, self.claims())
        self.goes_to(vip.servers[0], owner.datagram(long(self.foreign_cid())), "RETRIEVED_HANDSHAKE")


class FloodKeepsLiveEntries(AssignTest):
    """Thousands of Initials from unknown clients do not evict TCP connections or live handshakes, and every packet
    is accounted for."""

    timeout = 600  # longer than the flood takes on any machine

    def runTest(self) -> None:
        flow = Flow(random_client(self.rng, False), VIP4)
        has_tcp = self.client.program.control(TCP_CONTROL) is not None
        if has_tcp:
            tcp = self.make_vip(4)
            pinned = tcp.servers[flow.hash & 3]
            self.goes_to(pinned, flow.up("S"), "ASSIGNED_FALLBACK")
            self.site.set_maglev(tcp, [next(s for s in tcp.servers if s != pinned).sid] * 4)

        vip = self.make_quic(4, policy=HASH)
        conversation = self.new_conversation(vip)
        server = vip.servers[conversation.hash & 3]
        self.goes_to(server, conversation.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        for _ in range(200):
            for _ in range(20):
                nobody = Conversation(random_client(self.rng, True), vip.at)
                self.send(1, nobody.datagram(long(self.foreign_cid())))
            self.settle()
        claims = self.claims()
        self.assertEqual(4001, claims["TAKEN"] + claims["REFUSED"])
        if has_tcp:
            self.assertEqual({0: 1}, self.client.counter("FrontageIngress.cclb4.fallback.claims.claims"))
            self.goes_to(pinned, flow.up("A"), "RETRIEVED_TABLE")
        self.goes_to(server, conversation.datagram(long(self.foreign_cid())), "RETRIEVED_HANDSHAKE")


class DrainingServersKeepHandshakes(AssignTest):
    """A draining server keeps its handshakes, and gets no new ones."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.make_quic(2)
        stays, leaves = vip.servers
        self.load(vip, leaves, 1, 1)
        self.load(vip, stays, 99, 99)
        conversation = self.begin_quic(vip, leaves, "ASSIGNED_CCLB4")
        leaves.active = False
        self.site.update_server(vip, leaves)
        self.site.set_maglev(vip, [stays.sid] * 2)
        self.begin_quic(vip, stays, "ASSIGNED_NO_LOAD")  # the tree is still empty
        self.load(vip, leaves, 0, 0)
        self.begin_quic(vip, stays, "ASSIGNED_CCLB4")
        self.rest_of_handshake(conversation, leaves)


class RemovedServersHandshakeIsReleased(AssignTest):
    """The first packet for a removed server releases the entry, so that the client's next attempt is assigned anew."""

    def runTest(self) -> None:
        vip = self.make_quic(2, policy=HASH)
        gone, left = vip.servers
        self.site.set_maglev(vip, [gone.sid] * 2)
        long_header, short_header = self.begin_quic(vip, gone, "ASSIGNED_HASH"), self.begin_quic(vip, gone, "ASSIGNED_HASH")
        self.site.remove_server(vip, gone)
        self.site.set_maglev(vip, [left.sid] * 2)
        self.drops(1, long_header.datagram(long(self.foreign_cid())), "SERVER_GONE")
        self.goes_to(left, long_header.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        self.drops(1, short_header.datagram(short(self.foreign_cid())), "SERVER_GONE")
        self.drops(1, short_header.datagram(short(self.foreign_cid())), "QUIC_NO_CONNECTION")


class VipWithoutServersDrops(AssignTest):
    """A VIP without servers drops packets for that reason, and they claim no entry."""

    def runTest(self) -> None:
        for policy in (HASH, CHEETAH_RR, CCLB4):
            vip = self.make_quic(0, 7 + policy, QUIC4.__class__(QUIC4.address, 4430 + policy), policy, base=policy)
            self.drops(1, self.new_conversation(vip).datagram(long(self.foreign_cid())), "VIP_NO_SERVER")
        self.assertEqual({}, self.claims())

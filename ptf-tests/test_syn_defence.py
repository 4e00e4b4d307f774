# SPDX-License-Identifier: Apache-2.0
"""The defence against SYN floods: answers with SYN cookies, and acknowledgments with them (docs/syn-flood.md)."""

import struct
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

from frontage_ptf.balancer import BalancerTest
from frontage_ptf.cookie import VECTORS, Key
from frontage_ptf.frame import Frame
from frontage_ptf.names import CLAIMS
from frontage_ptf.packets import (
    MSS,
    NEIGHBOR_MAC,
    NOP,
    PORT_MAC,
    SACK_OK,
    WINDOW_SCALE,
    Endpoint,
    Flow,
    linux_syn,
    stamped,
    timestamp,
    windows_syn,
)
from frontage_ptf.site import CCLB4, CHEETAH_LL, CHEETAH_RR, HASH, INGRESS, Server, Vip
from frontage_ptf.switch import KEY, to_server
from frontage_ptf.syn import NO_WINDOW_SCALE, Options, isn, key_words

OFFERED_MSS = 1400
CLIENT_ISN = 1000
PASSED, ANSWERED, COMPLETED, REFUSED = range(4)
EOL = b"\0"
LINUX = Options(mss=1460, window_scale=7, sack=True)
SYNS: dict[str, tuple[bytes, Options]] = {
    "Linux": (linux_syn(7), LINUX),
    "Windows": (windows_syn(), Options(mss=1460, timestamps=False)),
    "macOS": (MSS + NOP + WINDOW_SCALE + NOP + NOP + timestamp(7) + SACK_OK + EOL * 2, LINUX),
    "FreeBSD": (MSS + NOP + WINDOW_SCALE + SACK_OK + timestamp(7), LINUX),
    "no SACK": (bytes([2, 4, 5, 0x14]) + NOP + NOP + timestamp(7) + NOP + bytes([3, 3, 14]), Options(1300, window_scale=14)),
    "no window scale": (bytes([2, 4, 2, 0]) + SACK_OK + timestamp(7), Options(512, sack=True)),
    "jumbo": (bytes([2, 4, 0x23, 0xD4]) + SACK_OK + timestamp(7) + NOP + WINDOW_SCALE, Options(9172, window_scale=7, sack=True)),
    "only timestamps": (NOP + NOP + timestamp(7), Options()),
    "no options": (b"", Options(timestamps=False)),
}


@dataclass(frozen=True)
class Answer:
    """The switch's answer to a SYN."""

    flow: Flow
    isn: int
    tsval: int | None

    @property
    def age(self) -> int:
        return self.isn >> 29 & 3

    def ack(self, payload: bytes = b"", ack: int = 0, tsecr: int | None = None, seq: int = 0) -> bytes:
        """Return the client's acknowledgment, with differences to the correct numbers."""
        echo = self.tsval if tsecr is None else tsecr
        options = b"" if echo is None else stamped(8, echo)
        return numbered(self.flow.up("PA" if payload else "A", options, payload), CLIENT_ISN + 1 + seq, self.isn + 1 + ack)


def numbered(frame: bytes, seq: int, ack: int) -> bytes:
    """Return a segment with other sequence numbers."""
    changed = Frame(frame)
    struct.pack_into("!II", changed.data, changed.l4 + 4, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF)
    return changed.with_checksums()


def with_tsecr(frame: bytes, tsecr: int) -> bytes:
    changed = Frame(frame)
    struct.pack_into("!I", changed.data, changed._timestamp() + 4, tsecr)
    return changed.with_checksums()


def answer_frame(flow: Flow, number: int, client: Options, tsval: int | None) -> bytes:
    """Return the answer that a client must get, built field by field."""
    options = struct.pack("!HH", 0x0204, OFFERED_MSS)
    if tsval is not None:
        options += (SACK_OK if client.sack else NOP + NOP) + timestamp(tsval, 7)
        if client.window_scale != NO_WINDOW_SCALE:
            options += NOP + WINDOW_SCALE
    tcp = struct.pack("!HHIIHHHH", flow.vip.port, flow.client.port, number, CLIENT_ISN + 1, 0, 0xFFFF, 0, 0)
    tcp = tcp[:12] + struct.pack("!BB", (5 + len(options) // 4) << 4, 0x12) + tcp[14:] + options
    source, destination = flow.vip.address.packed, flow.client.address.packed
    if len(source) == 4:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + source + destination
        kind = b"\x08\x00"
    else:
        head = struct.pack("!IHBB", 6 << 28 | 0xABCDE, len(tcp), 6, 64) + source + destination
        kind = b"\x86\xdd"
    macs = bytes.fromhex((NEIGHBOR_MAC[1] + PORT_MAC[1]).replace(":", ""))
    return Frame(macs + kind + head + tcp).with_checksums()


class SynDefenceTest(BalancerTest):
    """VIPs of each IP version under attack."""

    control = "syn_defence"
    key: Key = KEY
    """The key of SYN cookies."""

    def _begin(self) -> None:
        super()._begin()
        self.install_syn_key(KEY)
        self.site.modify(self.site.entry(f"{INGRESS}syn_defence.active_key", None, "set_active_key", epoch=KEY.epoch))

    def install_syn_key(self, key: Key) -> None:
        first, second = key_words(key.secret)
        table = f"{INGRESS}syn_defence."
        self.site.insert(
            [
                self.site.entry(table + "secrets", {"epoch": key.epoch}, "set_secret", key=first << 32 | second),
                self.site.entry(table + "clock", {"epoch": key.epoch}, "set_clock_offset", offset=key.id & 0xFFFF),
            ]
        )

    def defend(self, *vips: Vip, is_only_switch: bool = True) -> None:
        fields = {"mss": OFFERED_MSS, "is_only_switch": int(is_only_switch)}
        self.site.insert(self.site.entry(f"{INGRESS}syn_defence.vip", {"vip_id": vip.id}, "answer", **fields) for vip in vips)

    def watch(self, vip: Vip) -> None:
        self.site.modify(self.site.entry(f"{INGRESS}syn_defence.vip", {"vip_id": vip.id}, "watch"))

    def answered(self, flow: Flow, options: bytes, client: Options, server: Server | None = None) -> Answer:
        """Send a SYN and check the whole answer; with timestamps, it names `server`, if that is known."""
        before = self.outcomes()
        fate = self.fate(1, flow.up("S", options))
        self.assertEqual(1, fate.port, str(fate))
        found = Frame(fate.frame)
        number = struct.unpack_from("!I", found.data, found.l4 + 4)[0]
        age = number >> 29 & 3
        expected = isn(self.key.secret, flow.client.address, flow.client.port, CLIENT_ISN, self.key.epoch, age, client)
        self.assertEqual(expected, number)
        tsval = None
        if client.timestamps:
            tsval = found.tsval
            self.assertEqual(client.bits, (tsval >> 16) - KEY.id & 31, "the clock carries the options")
            sid = KEY.open(tsval & 0xFFFF, flow.hash)
            self.assertIsNotNone(sid)
            if server is not None:
                self.assertEqual(server.sid, sid)
        self.assertEqual(answer_frame(flow, number, client, tsval).hex(), fate.frame.hex())
        self.assertEqual({"SYN_ANSWERED": 1}, dict(self.outcomes() - before))
        return Answer(flow, number, tsval)

    def completes(self, server: Server, answer: Answer, outcome: str, payload: bytes = b"") -> None:
        """Check that an acknowledgment reaches the server, whose agent finds the client's options in TSecr."""
        frame = answer.ack(payload)
        given = frame if answer.tsval is None else with_tsecr(frame, answer.tsval - (KEY.id << 16) & 0xFFFFFFFF)
        to = 3
        self.passes(1, frame, to, to_server(given, server), outcome)

    def named(self, answer: Answer, vip: Vip) -> Server:
        assert answer.tsval is not None
        sid = KEY.open(answer.tsval & 0xFFFF, answer.flow.hash)
        assert sid is not None
        return vip.server(sid)

    def counts(self, vip: Vip) -> list[int]:
        cells: dict[int, int] = self.client.counter(f"{INGRESS}syn_answer.packets.packets")
        return [cells.get(vip.id << 2 | kind, 0) for kind in range(4)]

    def claims(self) -> dict[str, int]:
        counts = self.client.counter("FrontageIngress.cclb4.fallback.claims.claims")
        return {CLAIMS[kind]: count for kind, count in counts.items()}


class SynIsAnsweredWithCookie(SynDefenceTest):
    """Each stack's SYN gets an answer whose sequence number and clock hold its options."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            self.defend(vip)
            for name, (options, client) in SYNS.items():
                with self.subTest(name):
                    self.answered(self.new_flow(vip), options, client)
            self.assertEqual([0, len(SYNS), 0, 0], self.counts(vip))
        self.assertEqual({}, self.claims(), "a SYN claims nothing")


class AcknowledgmentReachesTheNamedServer(SynDefenceTest):
    """The acknowledgment and what follows reach the server that the policy chose for the SYN."""

    def runTest(self) -> None:
        for policy in (HASH, CHEETAH_RR):
            for vip in self.tcp_vips(policy):
                self.defend(vip)
                for _ in range(4):
                    answer = self.answered(self.new_flow(vip), linux_syn(7), LINUX)
                    server = self.named(answer, vip)
                    self.completes(server, answer, "RETRIEVED_COOKIE")
                    self.completes(server, answer, "RETRIEVED_COOKIE", b"GET / HTTP/1.1\r\n")
                    # Later segments have other numbers, and are those of any connection.
                    later = answer.ack(b"more", seq=16)
                    self.passes(1, later, 3, to_server(later, server), "RETRIEVED_COOKIE")
                self.assertEqual([0, 4, 4, 0], self.counts(vip), "data are not counted")
            self.restart()


class LoadCountsFromTheAcknowledgment(SynDefenceTest):
    """A SYN leaves the tree unchanged, so a flood does not. The acknowledgment without data counts as a connection."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        for policy in (CCLB4, CHEETAH_LL):
            for vip in self.tcp_vips(policy):
                self.seed(vip, *vip.servers)
                self.defend(vip)
                for _ in range(6):
                    flow = self.new_flow(vip)
                    best = self.leaves.best(vip, flow.hash)
                    assert best is not None
                    answer = self.answered(flow, linux_syn(7), LINUX, vip.server(best))
                    self.wait_for_leaf(vip.server(best).slot, self.leaves.at[vip.server(best).slot])
                    self.completes(vip.server(best), answer, "RETRIEVED_COOKIE", b"early data")
                    self.completes(vip.server(best), answer, "RETRIEVED_COOKIE")
                    self.leaves.add(vip.server(best).slot, best, vip.flow_unit, flow.hash)
                    self.wait_for_leaf(vip.server(best).slot, self.leaves.at[vip.server(best).slot])
            self.restart()
            self.add_class(0, 0.5)


class ClientWithoutTimestampsClaimsAnEntry(SynDefenceTest):
    """Its acknowledgment claims an entry of the connection table, which later packets find."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            self.defend(vip)
            flow = self.new_flow(vip)
            answer = self.answered(flow, windows_syn(), SYNS["Windows"][1])
            first = vip.servers[1]
            self.site.set_maglev(vip, [first.sid] * vip.maglev_size)
            self.completes(first, answer, "RETRIEVED_TABLE")
            self.site.set_maglev(vip, [vip.servers[2].sid] * vip.maglev_size)
            self.completes(first, answer, "RETRIEVED_TABLE", b"GET / HTTP/1.1\r\n")
            self.goes_to(first, answer.ack(b"more", seq=16), "RETRIEVED_TABLE")
            self.assertEqual([0, 1, 1, 0], self.counts(vip))
        self.assertEqual({"TAKEN": 2}, self.claims())


class WrongAcknowledgmentsAreDropped(SynDefenceTest):
    """Without a cookie, an entry of the connection table or a cookie of a server, no packet reaches a server."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            self.defend(vip)
            flow = self.new_flow(vip)
            answer = self.answered(flow, windows_syn(), SYNS["Windows"][1])
            other_client = replace(flow, client=Endpoint(flow.client.address + 1, flow.client.port))
            other_port = replace(flow, client=Endpoint(flow.client.address, flow.client.port ^ 1))
            wrong = [
                *(answer.ack(ack=1 << bit) for bit in (0, 7, 25, 26, 28, 29, 30, 31)),
                *(answer.ack(seq=1 << bit) for bit in (0, 9, 31)),
                replace(answer, flow=other_client).ack(),
                replace(answer, flow=other_port).ack(),
                numbered(flow.up("R"), CLIENT_ISN + 1, answer.isn + 1),
                numbered(flow.up("SA"), CLIENT_ISN + 1, answer.isn + 1),
                flow.up("A"),
            ]
            for frame in wrong:
                self.drops(1, frame, "SYN_COOKIE")
            self.assertEqual([0, 1, 0, len(wrong)], self.counts(vip))
            # Timestamps that the SYN did not have, with a code that names no server.
            code = next(code for code in range(1 << 15) if KEY.open(code, flow.hash) is None)
            self.drops(1, answer.ack(tsecr=code), "SYN_COOKIE")
        self.assertEqual({}, self.claims())


class ConnectionsOfOtherSwitchesPass(SynDefenceTest):
    """In a fleet, a packet without timestamps may belong to a connection that began at another switch."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            self.defend(vip, is_only_switch=False)
            flow = self.new_flow(vip)
            code = next(code for code in range(1 << 15) if KEY.open(code, flow.hash) is None)
            self.drops(1, flow.up("A", stamped(8, code)), "SYN_COOKIE")
            hashed = vip.servers[1]
            self.site.set_maglev(vip, [hashed.sid] * vip.maglev_size)
            self.goes_to(hashed, flow.up("A"), "HASHED_NO_COOKIE")
        self.assertEqual({}, self.claims())


class EstablishedConnectionsContinue(SynDefenceTest):
    """Connections from before the attack keep their servers, by cookie and by the connection table."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            flow, other = self.new_flow(vip), self.new_flow(vip)
            server = self.server_of(other.up("S"), vip)
            self.defend(vip)
            for named in vip.servers:
                self.goes_to(named, flow.up("A", self.echoed(flow, named)), "RETRIEVED_COOKIE")
            self.goes_to(server, other.up("PA", payload=b"x"), "RETRIEVED_TABLE")
            self.comes_back(vip, flow.down(server.dip, "A"), "NO_INSIGHT")


class HandshakeOutlivesTheDefence(SynDefenceTest):
    """A watched VIP forwards SYNs, and still accepts acknowledgments of answers."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            self.defend(vip)
            answer = self.answered(self.new_flow(vip), linux_syn(7), LINUX)
            self.watch(vip)
            self.completes(self.named(answer, vip), answer, "RETRIEVED_COOKIE")
            self.assertIn(self.server_of(self.new_flow(vip).up("S", linux_syn(7)), vip), vip.servers)
            self.assertIn(self.server_of(self.new_flow(vip).up("A"), vip), vip.servers)
            self.assertEqual([1, 1, 1, 0], self.counts(vip))


class OlderKeySealsNumbers(SynDefenceTest):
    """With two keys, numbers have the older one's epoch, and the clock that of the cookie."""

    def runTest(self) -> None:
        older = Key(KEY.id - 1, bytes(range(16, 32)))
        self.install_syn_key(older)
        self.site.modify(self.site.entry(f"{INGRESS}syn_defence.active_key", None, "set_active_key", epoch=older.epoch))
        self.key = older
        for vip in self.tcp_vips():
            self.defend(vip)
            for _ in range(3):
                answer = self.answered(self.new_flow(vip), linux_syn(7), LINUX)
                self.completes(self.named(answer, vip), answer, "RETRIEVED_COOKIE")


class NumbersAgreeWithTheVectors(SynDefenceTest):
    """Numbers of docs/cookie-vectors.json pass if they are as young as the switch's own, and no others do."""

    def runTest(self) -> None:
        vips = {vip.at.address.version: vip for vip in self.tcp_vips()}
        self.defend(*vips.values())
        age = self.answered(self.new_flow(vips[4]), linux_syn(7), LINUX).age
        seen = {True: 0, False: 0}
        table = f"{INGRESS}syn_defence.secrets"
        self.site.insert([self.site.entry(table, {"epoch": 1 - KEY.epoch}, "set_secret", key=0)])
        for vector in VECTORS["syn"]:
            client = ip_address(vector["client"])
            if (age - vector["age"]) % 4 not in (0, 2) or client.is_loopback or client.is_multicast or client.is_reserved:
                continue
            first, second = key_words(bytes.fromhex(vector["secret"]))
            self.site.modify(self.site.entry(table, {"epoch": vector["epoch"]}, "set_secret", key=first << 32 | second))
            self.check(vips[client.version], vector, accepted=vector["age"] == age)
            seen[vector["age"] == age] += 1
        self.assertGreater(seen[True], 5)
        self.assertGreater(seen[False], 5)

    def check(self, vip: Vip, vector: dict[str, Any], accepted: bool) -> None:
        flow = Flow(Endpoint(ip_address(vector["client"]), vector["client_port"]), vip.at)
        options = b""
        if vector["timestamps"]:
            clock = 0x1240 | vector["window_scale"] << 1 | vector["sack"]
            epoch = KEY.epoch << 15
            code = next(code for code in range(epoch, epoch | 0x7FFF) if KEY.open(code, flow.hash) is None)
            options = stamped(8, (clock + KEY.id) << 16 | code)
        frame = numbered(flow.up("A", options), vector["client_isn"] + 1, vector["isn"] + 1)
        if accepted:
            fate = self.fate(1, frame)
            self.assertEqual(3, fate.port, f"{fate} {vector}")
        else:
            self.drops(1, frame, "SYN_COOKIE")

# SPDX-License-Identifier: Apache-2.0
"""Damaged packets: the switch survives all of them, and forwards each one or drops it for a named reason."""

import random
from ipaddress import ip_address

from finsy import P4PacketOut
from scapy.all import ARP, ICMP, UDP, Ether, ICMPv6EchoRequest, IPv6
from scapy.all import IP as Ip4
from scapy.all import ICMPv6ND_NS as Solicitation
from scapy.all import ICMPv6NDOptSrcLLAddr as SourceMac

from frontage_ptf.balancer import VIP4, VIP6, BalancerTest
from frontage_ptf.frame import TCP, Frame, ipv4_valid
from frontage_ptf.packets import MSS, NEIGHBOR_MAC, NOP, Endpoint, Flow, ethernet, linux_syn, sack, stamped, timestamp, windows_syn
from frontage_ptf.site import CLEAR, Vip

PACKETS = 10_000
BURST = 50
VLAN_TAGS = (b"\x81\x00", b"\x88\xa8")


def mutated(rng: random.Random, frame: bytes) -> bytes:
    """Return the frame with one to six random changes: bits, bytes, lengths, or pieces removed, doubled or moved."""
    data = bytearray(frame)
    for _ in range(rng.randint(1, 6)):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(8)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            data[at : at + 4] = rng.randbytes(4)
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            del data[at : at + rng.randint(1, 16)]
        elif kind == 5:
            data[at:at] = rng.randbytes(rng.randint(1, 40))
        elif kind == 6:
            data[at:at] = data[at : at + rng.randint(1, 40)]
        else:
            data[12:14] = rng.choice([b"\x08\x00", b"\x86\xdd", b"\x08\x06"])
    data = data[:1514]
    if len(data) < 14 or (len(data) < 18 and data[12:14] in VLAN_TAGS):
        return frame  # shorter than Ethernet or its VLAN tag: the kernel rejects it
    return bytes(data)


class MalformedTest(BalancerTest):
    """A VIP of each IP version with servers that report, so that packets reach every part of the program."""

    def setUp(self) -> None:
        super().setUp()
        self.add_class(0, 0.5)
        self.vips = [self.make_vip(4, 1, VIP4), self.make_vip(4, 2, VIP6, base=4, first_sid=200)]
        for vip in self.vips:
            self.seed(vip, *vip.servers)

    def valid(self, vip: Vip) -> list[tuple[int, bytes]]:
        """Return packets of every kind that the switch handles, with their ingress ports."""
        flow, server = self.new_flow(vip), self.rng.choice(vip.servers)
        cookie = self.echoed(flow, server)
        packets = [
            (1, flow.up("S", linux_syn(1))),
            (1, flow.up("S", windows_syn())),
            (1, flow.up("PA", cookie, b"data")),
            (1, flow.up("A", cookie + sack(1, 2))),
            (1, flow.up("A", NOP + timestamp(1, 2) + NOP)),
            (1, flow.up("FA")),
            (3, flow.down(server.dip, "SA", linux_syn(0x10002222), ck=1)),
            (3, flow.down(server.dip, "SA", MSS)),
            (3, flow.down(server.dip, "PA", stamped(0x12345678, 5), b"data", ck=1)),
        ]
        me = flow.client.address
        if me.version == 4:
            other = Endpoint(ip_address("203.0.113.9"), 80)
            packets += [
                (1, flow.up("PA", cookie, b"data", between=NOP * 12)),
                (
                    1,
                    bytes(
                        Ether(src=NEIGHBOR_MAC[1], dst="ff:ff:ff:ff:ff:ff")
                        / ARP(hwsrc=NEIGHBOR_MAC[1], psrc=str(me), pdst="198.51.100.1")
                    ),
                ),
                (1, bytes(ethernet(1) / Ip4(src=str(me), dst=str(vip.at.address)) / ICMP() / b"ping")),
                (1, bytes(ethernet(1) / Ip4(src=str(me), dst="203.0.113.9") / UDP() / b"transit")),
            ]
        else:
            other = Endpoint(ip_address("2001:db8:2::9"), 80)
            solicitation = Solicitation(tgt="2001:db8:1::1") / SourceMac(lladdr=NEIGHBOR_MAC[1])
            packets += [
                (1, flow.up("PA", cookie, b"data", between=bytes([60, 0, 1, 4] + [0] * 4 + [6, 1, 1, 12] + [0] * 12), first=0)),
                (1, bytes(ethernet(1) / IPv6(src=str(me), dst="ff02::1:ff00:1", hlim=255) / solicitation)),
                (1, bytes(ethernet(1) / IPv6(src=str(me), dst=str(vip.at.address)) / ICMPv6EchoRequest(data=b"ping"))),
            ]
        return [*packets, (1, Flow(flow.client, other).up("A", stamped(1, 2)))]

    def flood(self, frames: list[tuple[int, bytes]]) -> None:
        for start in range(0, len(frames), BURST):
            burst = frames[start : start + BURST]
            for port, frame in burst:
                self.send(port, frame)
            self.settle()

    def still_serves(self) -> None:
        for vip in self.vips:
            for server in vip.servers:
                flow = self.new_flow(vip)
                self.goes_to(server, flow.up("A", self.echoed(flow, server)), "RETRIEVED_COOKIE")


class RandomMutations(MalformedTest):
    """10,000 seeded mutations of valid packets."""

    def runTest(self) -> None:
        frames: list[tuple[int, bytes]] = []
        while len(frames) < PACKETS:
            for port, frame in self.valid(self.rng.choice(self.vips)):
                frames.append((port, mutated(self.rng, frame)))
        self.flood(frames[:PACKETS])
        self.still_serves()


class ChecksumsStayRightOrWrong(MalformedTest):
    """Damage after the IPv4 header, with a correct header checksum so that it passes validation: a correct TCP
    checksum stays correct, a wrong one wrong, and no byte is lost or added."""

    def runTest(self) -> None:
        frames: list[tuple[int, bytes]] = []
        while len(frames) < 1_500:
            for port, frame in self.valid(self.vips[0]):
                damaged = frame[:34] + mutated(self.rng, frame)[34:]
                if frame[12:14] == b"\x08\x00":
                    damaged = damaged[:16] + (len(damaged) - 14).to_bytes(2, "big") + damaged[18:]
                    whole = Frame(ipv4_valid(damaged))
                    right = self.rng.random() < 0.5 and whole.has_checksum(TCP)
                    frames.append((port, whole.with_checksums() if right else bytes(whole.data)))
        left = 0
        for port, frame in frames:
            fate = self.fate(port, frame)
            if fate.reason is None:
                left += 1
                self.assertEqual(len(frame), len(fate.frame), frame.hex())
                self.assertEqual(Frame(frame).bad_checksums(), Frame(fate.frame).bad_checksums(), f"{fate}\nof {frame.hex()}")
        self.assertGreater(left, 500)
        self.still_serves()


class RandomBytes(MalformedTest):
    """Random bytes as whole frames, and after a valid Ethernet header."""

    def runTest(self) -> None:
        frames: list[tuple[int, bytes]] = []
        for _ in range(1_000):
            noise = self.rng.randbytes(self.rng.randint(18, 300))
            head = bytes(ethernet(1))[:12] + self.rng.choice([b"\x08\x00", b"\x86\xdd", b"\x08\x06"])
            frames += [(1, noise), (3, head + noise)]
        self.flood(frames)
        self.still_serves()


class InvalidTreeOperationsDoNoHarm(MalformedTest):
    """Operations on leaves and depths that do not exist, and unknown operations: the next report still sets its
    score."""

    def runTest(self) -> None:
        self.only_on_softswitch("answer to a register index out of range: it ends")
        vip = self.vips[0]
        for _ in range(300):
            fields = {"op": self.rng.getrandbits(8), "depth": self.rng.getrandbits(8), "slot": self.rng.randrange(100, 65536)}
            noise = self.rng.randbytes(self.rng.choice([0, 1, 60]))
            self.client.send(P4PacketOut(noise, sid=self.rng.getrandbits(16), score=self.rng.getrandbits(16), **fields))
        for server in vip.servers:
            self.site.update_tree(vip, CLEAR, server.slot, server.sid)
            self.leaves.clear(server.slot)
            self.wait_for_leaf(server.slot, 0)
        for server in vip.servers:
            self.report(vip, server, self.rng.randrange(9), 3)
        for _ in range(12):
            self.begin(vip)
        self.still_serves()


class EveryBitFlipped(MalformedTest):
    """Each single bit of a segment with a cookie, of a report and of a neighbor solicitation."""

    def runTest(self) -> None:
        frames: list[tuple[int, bytes]] = []
        for vip in self.vips:
            for port, frame in [packet for packet in self.valid(vip) if len(packet[1]) < 110]:
                for bit in range(8 * len(frame)):
                    flipped = bytearray(frame)
                    flipped[bit // 8] ^= 1 << bit % 8
                    frames.append((port, bytes(flipped)))
        self.flood(self.rng.sample(frames, 3_000))
        self.still_serves()

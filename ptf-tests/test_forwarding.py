# SPDX-License-Identifier: Apache-2.0
"""Longest-prefix-match forwarding of traffic without a VIP, IPv4 and IPv6."""

from ipaddress import ip_address

from frontage_ptf.frame import Frame
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, Flow, stamped
from frontage_ptf.switch import FrontageTest

CLIENT4, OTHER4 = Endpoint(ip_address("198.51.100.7"), 4000), Endpoint(ip_address("203.0.113.9"), 80)
CLIENT6, OTHER6 = Endpoint(ip_address("2001:db8:1::7"), 4000), Endpoint(ip_address("2001:db8:2::9"), 80)


def packet(src: Endpoint, dst: Endpoint, port: int = 1, ttl: int = 64) -> bytes:
    return Flow(src, dst).up(options=stamped(1, 2), payload=b"transit", port=port, ttl=ttl)


class TransitIsRouted(FrontageTest):
    """Between any two networks only MACs, TTL and header checksum change."""

    def runTest(self) -> None:
        ends = [("198.51.100.7", 1), ("203.0.113.9", 2), ("10.1.0.9", 3), ("10.2.7.9", 4)]
        ends += [("2001:db8:1::7", 1), ("2001:db8:2::7", 2), ("fd12:3456:a::7", 3), ("fd12:3456:b::7", 4)]
        for src, enters in ends:
            for dst, leaves in ends:
                a, b = ip_address(src), ip_address(dst)
                if a.version == b.version:
                    with self.subTest(src=src, dst=dst):
                        frame = packet(Endpoint(a, 1234), Endpoint(b, 5678), enters)
                        expected = Frame(frame).rewritten((PORT_MAC[leaves], NEIGHBOR_MAC[leaves]))
                        self.passes(enters, frame, leaves, expected)


class LongestPrefixWins(FrontageTest):
    """Every length from /0 up: adding and removing a prefix moves only its own addresses."""

    def doRunTest(self, src: Endpoint, dst: Endpoint, lengths: range) -> None:
        width = dst.address.max_prefixlen
        frame = packet(src, dst)
        routes = []
        for step, length in enumerate(lengths):
            network = int(dst.address) >> (width - length) << (width - length)
            prefix = f"{type(dst.address)(network)}/{length}"
            routes.append((prefix, 3 + step % 2))
            self.site.insert([self.site.route(*routes[-1])])
            self.leaves_by(frame, routes[-1][1])
        while len(routes) > 1:
            self.site.delete(self.site.route(*routes.pop()))
            self.leaves_by(frame, routes[-1][1])

    def leaves_by(self, frame: bytes, port: int) -> None:
        self.passes(1, frame, port, Frame(frame).rewritten((PORT_MAC[port], NEIGHBOR_MAC[port])))

    def runTest(self) -> None:
        self.doRunTest(CLIENT4, Endpoint(ip_address("77.170.85.3"), 80), range(33))
        self.doRunTest(CLIENT6, Endpoint(ip_address("2a00:1234:5678:9abc:def0:1234:5678:9abc"), 80), range(0, 129, 4))


class ExpiredTtlDrops(FrontageTest):
    """A TTL or hop limit of 1 or 0 is dropped; 2 passes."""

    def runTest(self) -> None:
        for src, dst in ((CLIENT4, OTHER4), (CLIENT6, OTHER6)):
            for ttl in (0, 1):
                self.drops(1, packet(src, dst, ttl=ttl), "TTL")
            for ttl in (2, 255):
                frame = packet(src, dst, ttl=ttl)
                self.passes(1, frame, 2, Frame(frame).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))


class NoRouteDrops(FrontageTest):
    """No prefix covers the address."""

    def runTest(self) -> None:
        self.drops(1, packet(CLIENT4, Endpoint(ip_address("8.8.8.8"), 53)), "NO_ROUTE")
        self.drops(1, packet(CLIENT6, Endpoint(ip_address("2a00::8"), 53)), "NO_ROUTE")


class MissingNextHopDrops(FrontageTest):
    """A route whose next hop is not installed drops packets, and forwards them once it is."""

    def runTest(self) -> None:
        self.site.insert([self.site.route("8.8.8.0/24", 77), self.site.route("2a00::/16", 77)])
        frames = [packet(CLIENT4, Endpoint(ip_address("8.8.8.8"), 53)), packet(CLIENT6, Endpoint(ip_address("2a00::8"), 53))]
        for frame in frames:
            self.drops(1, frame, "NO_NEXT_HOP")
        hop = {"port": 2, "src_mac": PORT_MAC[2], "dst_mac": NEIGHBOR_MAC[4]}
        self.site.insert([self.site.entry("FrontageIngress.forwarding.next_hop", {"next_hop": 77}, "forward", **hop)])
        for frame in frames:
            self.passes(1, frame, 2, Frame(frame).rewritten((PORT_MAC[2], NEIGHBOR_MAC[4])))


class WrongIpv4ChecksumWithOptionsStaysWrong(FrontageTest):
    """The switch verifies headers of 20 bytes only. The checksum of a longer one stays wrong."""

    def runTest(self) -> None:
        frame = Flow(CLIENT4, OTHER4).up(between=bytes([1] * 4))
        right = Frame(frame).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2]))
        wrong = frame[:24] + bytes([frame[24] ^ 0x10]) + frame[25:]
        fate = self.fate(1, wrong)
        self.assertEqual((2, right[:24], right[26:]), (fate.port, fate.frame[:24], fate.frame[26:]))
        self.assertEqual(["IPv4"], Frame(fate.frame).bad_checksums())


class WrongTcpChecksumStaysWrong(FrontageTest):
    """The switch does not repair checksums: the receiver must be able to detect the damage."""

    def runTest(self) -> None:
        frame = bytearray(packet(CLIENT4, OTHER4))
        frame[-1] ^= 1
        expected = bytearray(Frame(packet(CLIENT4, OTHER4)).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))
        expected[-1] ^= 1
        self.passes(1, bytes(frame), 2, bytes(expected))


class GroupSpreadsFlows(FrontageTest):
    """The flows of a group go to all of its next hops, and each packet of a flow to the same one."""

    control = "forwarding.next_hop_group"
    FLOWS = 256

    def setUp(self) -> None:
        super().setUp()
        self.site.insert([self.site.group_route("0.0.0.0/0", 7), self.site.group_route("::/0", 7)])

    def port_of(self, frame: bytes) -> int:
        fate = self.fate(1, frame)
        assert fate.port is not None, fate
        self.assertEqual(Frame(frame).rewritten((PORT_MAC[fate.port], NEIGHBOR_MAC[fate.port])), fate.frame)
        return fate.port

    def flows(self) -> list[bytes]:
        ends = [(CLIENT4.address, ip_address("8.8.8.8")), (CLIENT6.address, ip_address("2a00::8"))]
        return [packet(Endpoint(a, 4000 + i), Endpoint(b, 80)) for a, b in ends for i in range(self.FLOWS)]

    def runTest(self) -> None:
        self.site.insert([self.site.group(7, 2, 3, 4)])
        flows = self.flows()
        ports = [self.port_of(frame) for frame in flows]
        for family in filter(None, (ports[: self.FLOWS], ports[self.FLOWS :])):
            for port in (2, 3, 4):
                # Of 256 flows, a third: 85 with a standard deviation of 7.5.
                self.assertGreater(family.count(port), 85 - 4 * 7.5)
        self.assertEqual(ports, [self.port_of(frame) for frame in flows])
        # A flow keeps its path, whatever else its packets contain.
        again = Flow(CLIENT4, Endpoint(ip_address("8.8.8.8"), 80)).up(options=stamped(7, 9), payload=b"more", ttl=9)
        self.assertEqual(ports[0], self.port_of(again))

        # Without one member, the others take its flows.
        self.site.modify(self.site.group(7, 2, 4))
        after = [self.port_of(frame) for frame in flows]
        self.assertEqual({2, 4}, set(after))
        self.site.modify(self.site.group(7, 2, 3, 4))
        self.assertEqual(ports, [self.port_of(frame) for frame in flows])


class AddressesSpreadPackets(GroupSpreadsFlows):
    """Packets without ports spread by their addresses."""

    def flows(self) -> list[bytes]:
        def ping(i: int) -> bytes:
            frame = bytearray(packet(CLIENT4, Endpoint(ip_address(f"8.8.{i}.8"), 0)))
            frame[23] = 1  # ICMP
            return Frame(bytes(frame)).with_checksums()

        return [ping(i) for i in range(self.FLOWS)]


class EmptyGroupDrops(FrontageTest):
    """A group without next hops drops its packets, and so does a next hop of a group that is not installed."""

    control = "forwarding.next_hop_group"

    def runTest(self) -> None:
        self.site.insert([self.site.group_route("8.8.8.0/24", 7)])
        frame = packet(CLIENT4, Endpoint(ip_address("8.8.8.8"), 53))
        self.drops(1, frame, "NO_NEXT_HOP")
        self.site.insert([self.site.group(7, 77)])
        self.drops(1, frame, "NO_NEXT_HOP")
        self.site.modify(self.site.group(7, 2))
        self.passes(1, frame, 2, Frame(frame).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))
        self.site.delete(self.site.group(7, 2))
        self.drops(1, frame, "NO_NEXT_HOP")

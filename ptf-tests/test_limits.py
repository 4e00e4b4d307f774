# SPDX-License-Identifier: Apache-2.0
"""Limits on what clients send to a VIP: new connections and bytes, of the VIP and of client prefixes (docs/limits.md).

A meter with the rate 0 never refills, so it passes exactly its burst.
"""

import time
from ipaddress import ip_address, ip_network

import finsy as fy

from frontage_ptf.client import TEST_TIMEOUT
from frontage_ptf.packets import Endpoint, Flow, linux_syn, stamped
from frontage_ptf.quic import QUIC6, QuicTest, long, short
from frontage_ptf.site import HASH, INGRESS, Vip
from frontage_ptf.switch import KEY

ACTIONS = {
    "connections": "limit_vip_connections",
    "bytes": "limit_vip_bytes",
    "connections_by_client4": "limit_client_connections4",
    "connections_by_client6": "limit_client_connections6",
    "bytes_by_client4": "limit_client_bytes4",
    "bytes_by_client6": "limit_client_bytes6",
}
CLIENT_CONNECTIONS, CONNECTIONS, CLIENT_BANDWIDTH, BANDWIDTH = range(4)
NETWORK = {4: "198.51.100.0/24", 6: "2001:db8:1::/48"}
INSIDE = {4: ip_address("198.51.100.77"), 6: ip_address("2001:db8:1::77")}
OUTSIDE = {4: ip_address("203.0.113.77"), 6: ip_address("2001:db8:2::77")}


class LimitsTest(QuicTest):
    """VIPs of each IP version, whose meters pass exactly their bursts."""

    control = "limits"

    def limit(self, table: str, vip: Vip, burst: int, prefix: str | None = None, rate: int = 0) -> fy.P4TableEntry:
        match: dict[str, int | str] = {"vip_id": vip.id}
        if prefix is not None:
            match["src"] = prefix
        entry = self.site.entry(f"{INGRESS}limits.{table}", match, ACTIONS[table])
        entry.meter_config = fy.P4MeterConfig(cir=rate, cburst=burst, pir=rate, pburst=burst)
        return entry

    def flow(self, vip: Vip, turn: int, inside: bool = True) -> Flow:
        sources = INSIDE if inside else OUTSIDE
        return Flow(Endpoint(sources[vip.at.address.version], 20000 + turn), vip.at)

    def syn(self, vip: Vip, turn: int, inside: bool = True) -> bytes:
        return self.flow(vip, turn, inside).up("S", linux_syn(7))

    def passes_on(self, frame: bytes, port: int = 1) -> None:
        """Check that the packet reaches a server."""
        fate = self.fate(port, frame)
        self.assertIn(fate.port, (3, 4), str(fate))

    def refused(self, vip: Vip, kind: int) -> int:
        """Return the packets that a limit of the VIP refused."""
        counts: dict[int, int] = self.client.counter(f"{INGRESS}limits.refusals.refusals")
        return counts.get(vip.id << 2 | kind, 0)


class ConnectionsAboveTheLimitAreDropped(LimitsTest):
    """The VIP's burst of SYNs passes and the next one is dropped. Other packets, and other VIPs, have no limit."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            self.site.insert([self.limit("connections", vip, 5)])
            for turn in range(5):
                self.passes_on(self.syn(vip, turn, inside=turn % 2 == 0))
            for turn in range(5, 8):
                self.drops(1, self.syn(vip, turn), "LIMIT_CONNECTIONS")
            self.passes_on(self.flow(vip, 0).up("A", stamped(8, 5)))
            self.passes_on(self.flow(vip, 0).up("PA", stamped(9, 5), b"GET / HTTP/1.1\r\n"))
            self.assertEqual(3, self.refused(vip, CONNECTIONS))


class FirstQuicDatagramsAreNewConnections(LimitsTest):
    """Datagrams that may hold an Initial count as new connections, unless a server chose their connection id."""

    def runTest(self) -> None:
        vip = self.make_quic(2, 7, QUIC6, HASH, 48, 700)
        self.site.insert([self.limit("connections", vip, 3)])
        for _ in range(3):
            self.passes_on(self.new_conversation(vip).datagram(long(self.foreign_cid())))
        talk = self.new_conversation(vip)
        self.drops(1, talk.datagram(long(self.foreign_cid())), "LIMIT_CONNECTIONS")
        named = KEY.cid(vip.servers[0].sid, 3)
        self.passes_on(talk.datagram(long(named)))
        self.passes_on(talk.datagram(short(named)))
        self.assertEqual(1, self.refused(vip, CONNECTIONS))


class ClientPrefixHasLimitsOfItsOwn(LimitsTest):
    """A prefix uses up its own limit and not that of the VIP. The longest prefix applies."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            version = vip.at.address.version
            table = f"connections_by_client{version}"
            host = f"{INSIDE[version]}/{INSIDE[version].max_prefixlen}"
            self.site.insert(
                [
                    self.limit("connections", vip, 4),
                    self.limit(table, vip, 1, NETWORK[version]),
                    self.limit(table, vip, 2, host),
                ]
            )
            for turn in range(2):
                self.passes_on(self.syn(vip, turn))
            for turn in range(2, 6):
                self.drops(1, self.syn(vip, turn), "LIMIT_CLIENT_CONNECTIONS")
            neighbor = Flow(Endpoint(INSIDE[version] + 1, 20000), vip.at)
            self.passes_on(neighbor.up("S", linux_syn(7)))
            self.drops(1, neighbor.up("S", linux_syn(7)), "LIMIT_CLIENT_CONNECTIONS")
            # The refused ones did not use the VIP's limit: one of four is left.
            self.passes_on(self.syn(vip, 6, inside=False))
            self.drops(1, self.syn(vip, 7, inside=False), "LIMIT_CONNECTIONS")
            self.assertEqual([5, 1], [self.refused(vip, kind) for kind in (CLIENT_CONNECTIONS, CONNECTIONS)])


class BandwidthLimitCountsBytes(LimitsTest):
    """All packets of clients count with their whole frames, those of the longest matching prefix first."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            version = vip.at.address.version
            frame = self.flow(vip, 0).up("PA", stamped(8, 5), bytes(1000))
            size = self.counted_bytes([frame]) + self.header_bytes
            self.site.insert(
                [
                    self.limit("bytes", vip, 5 * size),
                    self.limit(f"bytes_by_client{version}", vip, 3 * size, str(ip_network(NETWORK[version]))),
                ]
            )
            for _ in range(3):
                self.passes_on(frame)
            self.drops(1, frame, "LIMIT_CLIENT_BANDWIDTH")
            other = self.flow(vip, 0, inside=False).up("PA", stamped(8, 5), bytes(1000))
            for _ in range(2):
                self.passes_on(other)
            self.drops(1, other, "LIMIT_BANDWIDTH")
            self.assertEqual([1, 1], [self.refused(vip, kind) for kind in (CLIENT_BANDWIDTH, BANDWIDTH)])


class RefusedConnectionsUseNoBandwidth(LimitsTest):
    """A SYN above the limit of connections does not count as bandwidth."""

    def runTest(self) -> None:
        (vip, _) = self.tcp_vips()
        syn = self.syn(vip, 0)
        self.site.insert([self.limit("connections", vip, 1), self.limit("bytes", vip, 2 * self.counted_bytes([syn]))])
        self.passes_on(syn)
        for turn in range(1, 4):
            self.drops(1, self.syn(vip, turn), "LIMIT_CONNECTIONS")
        self.passes_on(self.flow(vip, 0).up("A", stamped(8, 5)))


class ServersAreNotLimited(LimitsTest):
    """Packets from servers to clients pass, whatever the limits of their VIP are."""

    def runTest(self) -> None:
        for vip in self.tcp_vips():
            self.site.insert([self.limit("connections", vip, 1), self.limit("bytes", vip, 100)])
            for turn in range(3):
                self.comes_back(vip, self.flow(vip, turn).down(vip.servers[0].dip, "SA"), "NO_INSIGHT")


class LimitRefillsAndChanges(LimitsTest):
    """A meter refills at its rate. A change or the removal of the entry applies from the next packet on."""

    def runTest(self) -> None:
        (vip, _) = self.tcp_vips()
        self.site.insert([self.limit("connections", vip, 1)])
        self.passes_on(self.syn(vip, 0))
        self.drops(1, self.syn(vip, 1), "LIMIT_CONNECTIONS")
        self.site.modify(self.limit("connections", vip, 1, rate=50))
        end = time.monotonic() + TEST_TIMEOUT
        for _ in range(2):
            # The bucket is full after a fiftieth of a second.
            while self.fate(1, self.syn(vip, 2)).reason == "LIMIT_CONNECTIONS":
                self.assertLess(time.monotonic(), end, "the meter does not refill")
        self.site.modify(self.limit("connections", vip, 3))
        passed = sum(self.fate(1, self.syn(vip, 3)).reason is None for _ in range(6))
        self.assertEqual(3, passed, "a change fills the bucket")
        self.site.delete(self.limit("connections", vip, 3))
        for turn in range(4):
            self.passes_on(self.syn(vip, 10 + turn))

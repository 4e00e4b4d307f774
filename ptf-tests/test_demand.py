# SPDX-License-Identifier: Apache-2.0
"""Demand: handshakes by service and client region, each counted once, and digests of clients without a region."""

from collections import Counter
from ipaddress import ip_address

import finsy as fy

from frontage_ptf.cookie import plain_cid
from frontage_ptf.frame import Frame
from frontage_ptf.packets import Endpoint, Flow
from frontage_ptf.quic import QUIC4, QUIC6, Conversation, long, short
from frontage_ptf.site import Vip
from frontage_ptf.switch import KEY
from frontage_ptf.tunnel import SITE_PORT, TunnelTest

HANDSHAKES = "FrontageIngress.demand.handshakes.handshakes"
FIRST = {1: 1000, 2: 2000, 3: 3000}
"""First cell of each VIP."""
REGIONS = 64


class DemandTest(TunnelTest):
    """Two QUIC service addresses and a TCP VIP."""

    def _begin(self) -> None:
        super()._begin()
        self.expected: Counter[int] = Counter()
        self.vip4, self.vip6 = self.make_service(QUIC4, 1), self.make_service(QUIC6, 2)
        self.tcp = self.make_vip(2, 3, base=128, first_sid=300)
        for vip_id, base in FIRST.items():
            self.site.insert([self.entry("demand.service", {"vip_id": vip_id}, "set_counter_range", base=base, regions=REGIONS)])

    def locate(self, prefixes: dict[str, int]) -> None:
        for prefix, region in prefixes.items():
            table = f"region.client{6 if ':' in prefix else 4}"
            self.site.insert([self.entry(table, {"src": prefix}, "set_region", region=region)])

    def counts(self, frame: bytes, *cells: int, port: int = 1) -> None:
        """Check that the frame counts in these cells and in no others, whether or not it is dropped."""
        self.send(port, frame)
        self.settle()
        self.expected.update(cells)
        for cell in {*cells, *(base + region for base in FIRST.values() for region in (0, 1, REGIONS - 1))}:
            (found,) = self.client.read(fy.P4CounterEntry(HANDSHAKES, index=cell))
            self.assertEqual(self.expected[cell], found.packet_count, f"cell {cell} after {frame.hex()}")

    def tearDown(self) -> None:
        self.assertEqual(dict(self.expected), self.client.counter(HANDSHAKES))
        super().tearDown()

    def from_address(self, vip: Vip, address: str) -> Conversation:
        return Conversation(Endpoint(ip_address(address), self.rng.randrange(1024, 65536)), vip.at)


class CountsByServiceAndRegion(DemandTest):
    """The longest prefix chooses the cell. Clients without a region, or with one beyond the service's cells, count
    in its first cell."""

    def runTest(self) -> None:
        self.locate({"198.51.100.0/24": 5, "198.51.100.128/25": 6, "198.51.100.192/26": REGIONS, "198.51.100.224/27": 65535})
        self.locate({"2001:db8:1::/48": 7, "2001:db8:1:8::/61": REGIONS - 1})
        for address, region in (("198.51.100.9", 5), ("198.51.100.129", 6), ("198.51.100.193", 0), ("198.51.100.225", 0)):
            talk = self.from_address(self.vip4, address)
            self.counts(talk.datagram(long(self.foreign_cid())), FIRST[1] + region)
            self.counts(self.from_address(self.tcp, address).up("S"), FIRST[3] + region)
        for address, region in (("2001:db8:1::9", 7), ("2001:db8:1:9::9", REGIONS - 1), ("2001:db8:77::9", 0)):
            talk = self.from_address(self.vip6, address)
            self.counts(talk.datagram(long(self.foreign_cid())), FIRST[2] + region)


class OnlyFirstPacketsCount(DemandTest):
    """Later packets, datagrams too small for an Initial, packets from another site, and other VIPs do not count."""

    def runTest(self) -> None:
        self.install_keys(KEY)
        self.locate({"198.51.100.0/24": 1, "2001:db8:1::/48": 1})
        flow = self.new_flow(self.tcp)
        for flags in ("SA", "A", "F", "R", "SF"):
            self.counts(flow.up(flags))
        server = self.vip6.servers[0]
        for packet in (
            long(self.foreign_cid(), size=1199),
            short(self.foreign_cid(12)),
            long(KEY.cid(server.sid, 5)),
            long(plain_cid(server.sid)),
        ):
            self.counts(self.new_conversation(self.vip6).datagram(packet))
        _, frame = self.initial(self.vip6)
        self.counts(self.from_site(3, 3).into(frame), port=SITE_PORT)
        other = self.make_quic(2, 9, Endpoint(QUIC6.address + 9, 443), base=160, first_sid=900, prefix=None)
        self.counts(self.new_conversation(other).datagram(long(self.foreign_cid())))


class RetransmissionsCountOnce(DemandTest):
    """A retransmission is not another handshake. The same ports with another sequence number or connection id are."""

    def runTest(self) -> None:
        self.locate({"198.51.100.0/24": 1, "2001:db8:1::/48": 1})
        talk = self.new_conversation(self.vip6)
        first, second = (bytes([0xFF]) + self.rng.randbytes(11) for _ in range(2))
        self.counts(talk.datagram(long(first)), FIRST[2] + 1)
        for size in (1200, 1252):  # a retransmission, and the second half of a long ClientHello
            self.counts(talk.datagram(long(first, size=size)))
        self.counts(talk.datagram(long(second)), FIRST[2] + 1)
        flow = self.new_flow(self.tcp)
        self.counts(flow.up("S"), FIRST[3] + 1)
        self.counts(flow.up("S"))
        self.counts(self.numbered(flow, 7), FIRST[3] + 1)
        self.counts(self.numbered(flow, 7))

    def numbered(self, flow: Flow, sequence: int) -> bytes:
        frame = Frame(flow.up("S"))
        frame.data[frame.l4 + 4 : frame.l4 + 8] = sequence.to_bytes(4, "big")
        return frame.with_checksums()


class OverwrittenHandshakesCountAgain(DemandTest):
    """An entry keeps only the last handshake: a retransmission after another one counts again, and no handshake is
    missed."""

    def runTest(self) -> None:
        self.locate({"2001:db8:1::/48": 1})
        one, other = self.colliding_pair(self.vip6)
        first, second = (talk.datagram(long(self.foreign_cid())) for talk in (one, other))
        for frame in (first, second, first):
            self.counts(frame, FIRST[2] + 1)
        self.counts(first)


class DroppedHandshakesCount(DemandTest):
    """Handshakes with a service without servers count, too."""

    def runTest(self) -> None:
        self.locate({"198.51.100.0/24": 1, "2001:db8:1::/48": 1})
        for server in self.tcp.servers:
            self.site.remove_server(self.tcp, server)
        self.counts(self.new_flow(self.tcp).up("S"), FIRST[3] + 1)
        self.assertEqual({"SERVER_GONE": 1}, self.all_drops())


class NewClientsAreReported(DemandTest):
    """A handshake of a client without a region sends a digest of its /24 or /48, once until it is acknowledged.
    Others send none."""

    def runTest(self) -> None:
        (digest,) = (one for one in self.client.schema.digests if one.alias == "new_client_t")
        self.client.write(+fy.P4DigestEntry(digest.alias, max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**11))
        self.locate({"2001:db8:1::/48": 1})
        self.counts(self.initial(self.vip6)[1], FIRST[2] + 1)
        heard = []
        for vip, address in ((self.vip6, "2001:db8:77:8::9"), (self.vip4, "203.0.113.77")):
            for _ in range(2):
                frame = self.from_address(vip, address).datagram(long(self.foreign_cid()))
                self.counts(frame, FIRST[vip.id])
            heard.append(fy.P4DigestList.decode(self.client.next_message("digest"), self.client.schema))
        told = [{"version": 6, "prefix": 0x20010DB80077}, {"version": 4, "prefix": 0xCB0071}]
        self.assertEqual([[one] for one in told], [report.data for report in heard])
        for report in heard:
            self.client.send(report.ack())
        again = None
        for _ in range(100):  # the switch does not confirm acknowledgements
            self.counts(self.from_address(self.vip4, "203.0.113.78").datagram(long(self.foreign_cid())), FIRST[1])
            if not self.client.received.empty():
                again = fy.P4DigestList.decode(self.client.next_message("digest"), self.client.schema)
                break
        self.assertEqual([told[1]], again and again.data)

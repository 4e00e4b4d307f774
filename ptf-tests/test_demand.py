"""Demand: handshakes counted by service and client's region, each once, and clients of no region told."""

from collections import Counter

import finsy as fy

from base.cookie import plain_cid
from base.frame import Frame
from base.packets import Endpoint, Flow
from base.quic import QUIC4, QUIC6, long
from base.site import HASH, Vip
from base.switch import KEY
from base.tunnel import SITE_PORT, TunnelTest

HANDSHAKES = "FrontageIngress.demand.handshakes.handshakes"
FIRST, REGIONS = 1000, 64
"""Of a service's cells."""
DECIDED, DEPLOYED = 77, 8


class DemandTest(TunnelTest):
    def _begin(self) -> None:
        super()._begin()
        self.expected: Counter[int] = Counter()
        self.install_keys(KEY)

    def count(self, vip: Vip, base: int, regions: int = REGIONS) -> None:
        self.site.insert([self.entry("demand.service", {"vip_id": vip.id}, "counted", base=base, regions=regions)])

    def locate(self, prefix: str, region: int) -> None:
        version = 6 if ":" in prefix else 4
        self.site.insert([self.entry(f"region.client{version}", {"src": prefix}, "is_in", client_region=region)])

    def is_counted(self, *cells: int) -> None:
        """These cells, one handshake each, and no others since last asked."""
        self.expected.update(cells)
        self.settle()
        self.assertEqual(dict(self.expected), self.client.counter(HANDSHAKES))


class ByServiceAndRegion(DemandTest):
    """TCP and QUIC, over IPv4 and IPv6: the cell of the longest prefix; the service's first for all who have none."""

    def runTest(self) -> None:
        vips = [self.make_service(QUIC4, 1), self.make_service(QUIC6, 2)]
        vips += [self.make_vip(2, 3, policy=HASH), self.make_quic(2, 4, Endpoint(QUIC6.address + 9, 443), HASH, base=96, first_sid=400)]
        for i, vip in enumerate(vips[:3]):
            self.count(vip, FIRST * (i + 1))
        known = []
        for prefix, region in (
            ("198.51.100.0/24", 5),
            ("198.51.100.128/25", 6),
            ("2001:db8:1::/48", 7),
            ("2001:db8:1:0:8000::/65", REGIONS - 1),
            ("2001:db8:1:0:c000::/66", REGIONS),
        ):
            self.locate(prefix, region)
            known.append(region)
        seen: set[int] = set()
        while len(seen) < 3:
            talk, frame = self.initial(vips[1])
            bits = int(talk.client.address) >> 62 & 3
            region = 7 if bits < 2 else REGIONS - 1 if bits == 2 else 0
            self.arrives(frame)
            self.is_counted(2 * FIRST + region)
            seen.add(region)
        for vip, base in ((vips[0], FIRST), (vips[2], 3 * FIRST)):
            for _ in range(4):
                flow = self.new_flow(vip) if vip is vips[2] else self.talk(vip)
                assert isinstance(flow, Flow)
                self.arrives(flow.up("S") if vip is vips[2] else self.first(flow))
                self.is_counted(base + (6 if int(flow.client.address) & 128 else 5))
        # What nobody asked to count.
        self.arrives(self.initial(vips[3])[1])
        self.is_counted()

    def first(self, talk: Flow) -> bytes:
        return talk.datagram(long(self.some_cid()))  # type: ignore[attr-defined,no-any-return]

    def arrives(self, frame: bytes) -> None:
        self.send(1, frame)

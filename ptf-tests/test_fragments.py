# SPDX-License-Identifier: Apache-2.0
"""Fragments: those to a VIP are dropped, and those from a server, too, because its own address must not reach a client."""

from collections.abc import Iterator
from ipaddress import ip_address

from scapy.all import IPv6ExtHdrFragment, Raw

from frontage_ptf.balancer import VIP4, VIP6, BalancerTest
from frontage_ptf.frame import IP, Frame, overwritten
from frontage_ptf.icmp import forwarded
from frontage_ptf.packets import Endpoint, Flow, ethernet, layer3
from frontage_ptf.quic import QUIC6, QuicTest, own_address


def fragments(source: IP, target: IP, protocol: int, port: int) -> Iterator[bytes]:
    """Yield a first, a middle and a last fragment with data that may be ports."""
    data = bytes(range(64))
    for more, offset in ((1, 0), (1, 185), (0, 185)):
        if source.version == 6:
            head = layer3(source, target, first=44) / IPv6ExtHdrFragment(nh=protocol, offset=offset, m=more, id=5)
            yield Frame(bytes(ethernet(port) / head / Raw(data))).with_checksums()
        else:
            whole = bytes(ethernet(port) / layer3(source, target, first=protocol) / Raw(data))
            yield Frame(overwritten(whole, 20, more << 5 | offset >> 8, offset & 255)).with_checksums()


class FragmentsOfServersDrop(BalancerTest):
    """Every fragment from a server's address is dropped, whatever its protocol and receiver."""

    control = "fragments"

    def runTest(self) -> None:
        for vip in (self.make_vip(2, 1, VIP4), self.make_vip(2, 2, VIP6, base=2, first_sid=200)):
            for server in vip.servers:
                self.site.insert([self.site.fragment_source(vip, server)])
                for protocol in (6, 17, 1):
                    for frame in fragments(server.dip.address, self.new_flow(vip).client.address, protocol, 3):
                        self.drops(3, frame, "SERVER_FRAGMENT")
                flow = self.new_flow(vip)
                self.comes_back(vip, flow.down(server.dip, "PA", b"", b"data"), "NO_INSIGHT")


class FragmentsOfQuicServersDrop(QuicTest):
    """A QUIC server may send from any address of its /64, so fragments from all of them are dropped."""

    control = "fragments"

    def runTest(self) -> None:
        vip = self.make_quic(2, at=QUIC6)
        for server in vip.servers:
            self.site.insert([self.site.fragment_source(vip, server)])
            for source in (server.dip, own_address(server, 77)):
                for frame in fragments(source.address, self.new_conversation(vip).client.address, 17, 3):
                    self.drops(3, frame, "SERVER_FRAGMENT")


class FragmentsOfOthersPass(BalancerTest):
    """Fragments in transit are forwarded, also from neighbors of servers, and those to a VIP are dropped."""

    control = "fragments"

    def runTest(self) -> None:
        for vip in (self.make_vip(1, 1, VIP4), self.make_vip(1, 2, VIP6, base=1, first_sid=200)):
            server = vip.servers[0]
            self.site.insert([self.site.fragment_source(vip, server)])
            client = Flow(self.new_flow(vip).client, Endpoint(ip_address(server.dip.address + 200), 8080))
            for frame in fragments(client.vip.address, client.client.address, 17, 3):
                self.passes(3, frame, 1, forwarded(frame))
            for frame in fragments(client.client.address, client.vip.address, 17, 1):
                self.passes(1, frame, 3, forwarded(frame))
            for frame in fragments(client.client.address, vip.at.address, 6, 1):
                self.drops(1, frame, "VIP_FRAGMENT")

# SPDX-License-Identifier: Apache-2.0
"""ARP, neighbor discovery and ping: the switch replies for gateways and VIPs only."""

from ipaddress import IPv6Address, ip_address, ip_network

from scapy.all import ARP, ICMP, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Packet, Raw
from scapy.all import IP as Ip4
from scapy.all import ICMPv6ND_NA as Advertisement
from scapy.all import ICMPv6ND_NS as Solicitation
from scapy.all import ICMPv6NDOptDstLLAddr as TargetMac
from scapy.all import ICMPv6NDOptSrcLLAddr as SourceMac
from scapy.all import IPv6ExtHdrHopByHop as HopByHop

from frontage_ptf.frame import IP, Frame
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, ethernet
from frontage_ptf.site import NETWORKS, Vip, port_of
from frontage_ptf.switch import FrontageTest

VIP4 = Vip(1, Endpoint(ip_address("192.0.2.1"), 80))
VIP6 = Vip(2, Endpoint(ip_address("2001:db8:f::1"), 80))
NODE = {1: "198.51.100.7", 2: "203.0.113.7", 3: "10.1.0.7", 4: "10.2.0.7"}
NODE6 = {1: "2001:db8:1::7", 2: "2001:db8:2::7", 3: "fd12:3456:a::7", 4: "fd12:3456:b::7"}


class NeighborTest(FrontageTest):
    """A VIP of each IP version without servers: the switch owns the addresses anyway."""

    def setUp(self) -> None:
        super().setUp()
        self.site.add_vip(VIP4)
        self.site.add_vip(VIP6)

    def own_addresses(self, version: int) -> list[tuple[int, IP]]:
        """Yield ports, with an address of the switch on each."""
        gateways = [(port, ip_network(prefix)[1]) for prefix, port in NETWORKS.items()]
        vips = [(port, vip.at.address) for vip in (VIP4, VIP6) for port in (1, 2, 3)]
        return [(port, address) for port, address in gateways + vips if address.version == version]

    def replies(self, port: int, question: Packet, answer: Packet) -> None:
        """Check that the reply leaves by the port on which the request arrived."""
        expected = bytes(answer)
        self.assertEqual([], Frame(expected).bad_checksums() if question.haslayer(IPv6) else [])
        self.passes(port, bytes(question), port, expected)

    def mac_of(self, address: IP) -> str:
        """Return the MAC that the site's entries give for one of the switch's addresses."""
        return PORT_MAC[1] if address in (VIP4.at.address, VIP6.at.address) else PORT_MAC[port_of(address)]


class ArpForLocalAddressGetsReply(NeighborTest):
    """ARP requests for gateways and VIPs, broadcast and unicast."""

    def runTest(self) -> None:
        for port, address in self.own_addresses(4):
            for dst in ("ff:ff:ff:ff:ff:ff", PORT_MAC[port]):
                with self.subTest(port=port, address=address, dst=dst):
                    me, mine = NEIGHBOR_MAC[port], NODE[port]
                    ask = ARP(op=1, hwsrc=me, psrc=mine, hwdst="00:00:00:00:00:00", pdst=str(address))
                    mac = self.mac_of(address)
                    tell = ARP(op=2, hwsrc=mac, psrc=str(address), hwdst=me, pdst=mine)
                    pad = Raw(bytes(18))
                    self.replies(port, Ether(src=me, dst=dst) / ask / pad, Ether(src=mac, dst=me) / tell / pad)


class OtherArpIsDropped(NeighborTest):
    """A neighbor's address, a reply, an announcement, and ARP for other protocols than IPv4 over Ethernet."""

    def runTest(self) -> None:
        gateway = "198.51.100.1"
        cases = {
            "another node": ARP(op=1, pdst="198.51.100.8"),
            "an answer": ARP(op=2, pdst=gateway),
            "announcement": ARP(op=1, psrc="198.51.100.8", pdst="198.51.100.8"),
            "no such operation": ARP(op=0, pdst=gateway),
            "reverse": ARP(op=3, pdst=gateway),
        }
        for name, arp in cases.items():
            with self.subTest(name):
                arp.hwsrc, arp.psrc = NEIGHBOR_MAC[1], arp.psrc if name == "announcement" else NODE[1]
                reason = "NEIGHBOR_ANSWER" if name == "an answer" else "NEIGHBOR_NOT_LOCAL"
                self.drops(1, bytes(Ether(src=NEIGHBOR_MAC[1], dst="ff:ff:ff:ff:ff:ff") / arp), reason)
        request = ARP(op=1, hwsrc=NEIGHBOR_MAC[1], psrc=NODE[1], pdst=gateway)
        right = bytes(Ether(src=NEIGHBOR_MAC[1], dst="ff:ff:ff:ff:ff:ff") / request)
        for name, at, value in (("other hardware", 15, 6), ("other protocol", 17, 6)):
            with self.subTest(name):
                self.drops(1, right[:at] + bytes([value]) + right[at + 1 :], "NEIGHBOR_NOT_LOCAL")


def solicited_node(address: IP) -> tuple[str, str]:
    """Return the solicited-node multicast group and its MAC (RFC 4291, 2.7.1; RFC 2464, 7)."""
    low = int(address) & 0xFFFFFF
    group = IPv6Address(int(IPv6Address("ff02::1:ff00:0")) | low)
    return str(group), "33:33:ff:" + ":".join(f"{byte:02x}" for byte in low.to_bytes(3, "big"))


class SolicitationForLocalAddressGetsAdvertisement(NeighborTest):
    """Neighbor discovery for gateways and VIPs, multicast and unicast, with and without the requester's MAC."""

    def runTest(self) -> None:
        for port, address in self.own_addresses(6):
            me, mine, mac = NEIGHBOR_MAC[port], NODE6[port], self.mac_of(address)
            group, group_mac = solicited_node(address)
            for dst, dst_mac in ((group, group_mac), (str(address), PORT_MAC[port])):
                for option in (SourceMac(lladdr=me), None):
                    with self.subTest(port=port, address=address, dst=dst, option=option is not None):
                        ask = Ether(src=me, dst=dst_mac) / IPv6(src=mine, dst=dst, hlim=255) / Solicitation(tgt=str(address))
                        if option is not None:
                            ask /= option
                        tell = Ether(src=mac, dst=me) / IPv6(src=str(address), dst=mine, hlim=255)
                        tell /= Advertisement(tgt=str(address), R=1, S=1, O=1) / TargetMac(lladdr=mac)
                        self.replies(port, ask, tell)


class DuplicateAddressIsDefended(NeighborTest):
    """A node that probes one of our addresses has none itself, so the reply goes to all nodes (RFC 4861, 7.2.4);
    also with Linux' nonce."""

    def runTest(self) -> None:
        for port, address in self.own_addresses(6):
            me, mac = NEIGHBOR_MAC[port], self.mac_of(address)
            group, group_mac = solicited_node(address)
            for nonce in (b"", bytes([14, 1, 1, 2, 3, 4, 5, 6])):
                with self.subTest(port=port, address=address, nonce=bool(nonce)):
                    ask = (
                        Ether(src=me, dst=group_mac)
                        / IPv6(src="::", dst=group, hlim=255)
                        / Solicitation(tgt=str(address))
                        / Raw(nonce)
                    )
                    tell = Ether(src=mac, dst="33:33:00:00:00:01") / IPv6(src=str(address), dst="ff02::1", hlim=255)
                    tell /= Advertisement(tgt=str(address), R=1, S=0, O=1) / TargetMac(lladdr=mac)
                    self.replies(port, ask, tell)


class OtherSolicitationsAreDropped(NeighborTest):
    """Another node's address, and solicitations that do not come from this link (RFC 4861, 7.1.1)."""

    def runTest(self) -> None:
        gateway = "2001:db8:1::1"
        for name, target, hops, code in (
            ("another node", "2001:db8:1::8", 255, 0),
            ("from beyond the link", gateway, 254, 0),
            ("a code", gateway, 255, 1),
        ):
            with self.subTest(name):
                group, group_mac = solicited_node(ip_address(target))
                ask = Ether(src=NEIGHBOR_MAC[1], dst=group_mac) / IPv6(src=NODE6[1], dst=group, hlim=hops)
                ask /= Solicitation(tgt=target, code=code) / SourceMac(lladdr=NEIGHBOR_MAC[1])
                self.drops(1, bytes(ask), "NEIGHBOR_NOT_LOCAL")


class UnusualSolicitationsAreDropped(NeighborTest):
    """After an extension header, or with half an option: no reply rather than a wrong one."""

    def runTest(self) -> None:
        ethernet_header = Ether(src=NEIGHBOR_MAC[1], dst=PORT_MAC[1])
        solicitation = Solicitation(tgt="2001:db8:1::1") / SourceMac(lladdr=NEIGHBOR_MAC[1])
        to_gateway = IPv6(src=NODE6[1], dst="2001:db8:1::1", hlim=255)
        self.drops(1, bytes(ethernet_header / to_gateway / HopByHop() / solicitation), "NEIGHBOR_NOT_LOCAL")
        whole = bytes(ethernet_header / to_gateway / solicitation)
        self.drops(1, whole[:19] + bytes([28]) + whole[20:-4], "NEIGHBOR_NOT_LOCAL")
        self.drops(
            1,
            bytes(ethernet(1) / IPv6(src=NODE6[1], dst=str(VIP6.at.address)) / HopByHop() / ICMPv6EchoRequest()),
            "VIP_NO_SERVICE",
        )


class PingOfLocalAddressGetsReply(NeighborTest):
    """Pings of gateways and VIPs, from the link and from afar, of any size, odd ones too."""

    def runTest(self) -> None:
        for port, address in self.own_addresses(4) + self.own_addresses(6):
            for size in (0, 1, 56, 1400):
                with self.subTest(port=port, address=address, size=size):
                    mine, load = (NODE if address.version == 4 else NODE6)[port], Raw(bytes(i & 0xFF for i in range(size)))
                    back = Ether(src=PORT_MAC[port], dst=NEIGHBOR_MAC[port])
                    if address.version == 4:
                        ask = ethernet(port) / Ip4(src=mine, dst=str(address), ttl=3, id=9) / ICMP(type=8, id=5, seq=6) / load
                        tell = back / Ip4(src=str(address), dst=mine, ttl=64, id=9) / ICMP(type=0, id=5, seq=6) / load
                    else:
                        ask = (
                            ethernet(port)
                            / IPv6(src=mine, dst=str(address), hlim=3)
                            / ICMPv6EchoRequest(id=5, seq=6, data=load.load)
                        )
                        tell = back / IPv6(src=str(address), dst=mine, hlim=64) / ICMPv6EchoReply(id=5, seq=6, data=load.load)
                    self.replies(port, ask, tell)


class PingOfOthersIsRouted(NeighborTest):
    """An echo request to another host is transit."""

    def runTest(self) -> None:
        ask = ethernet(1) / Ip4(src=NODE[1], dst=NODE[2]) / ICMP() / b"through"
        self.passes(1, bytes(ask), 2, Frame(bytes(ask)).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))
        ask = ethernet(1) / IPv6(src=NODE6[1], dst=NODE6[2]) / ICMPv6EchoRequest(data=b"through")
        self.passes(1, bytes(ask), 2, Frame(bytes(ask)).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))

# SPDX-License-Identifier: Apache-2.0
"""Every kind of packet is forwarded, or dropped for a named reason. One line per case: its name, how it is made,
its fate."""

from collections.abc import Callable, Iterable
from ipaddress import ip_address

from scapy.all import ARP, GRE, ICMP, SCTP, UDP, Ether, ICMPv6EchoRequest, ICMPv6PacketTooBig, ICMPv6TimeExceeded

from frontage_ptf.frame import Frame
from frontage_ptf.loss import (
    COOKIE,
    HASHED,
    SYN_COOKIE,
    SYN_HASHED,
    TRANSIT,
    Case,
    LossTest,
    chain,
    cookie,
    data,
    extended,
    flagged,
    from_source,
    offset,
    patched,
    short,
    sweep,
    tagged,
    to_mac,
    to_vip,
    transit,
    typed,
    walked,
)
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
    sack,
    stamped,
    timestamp,
    windows_syn,
)

TCP_OPTIONS = [
    Case("SYN of Linux", lambda f: f.up("S", linux_syn(1)), SYN_COOKIE),
    Case("fast open with data", lambda f: f.up("S", linux_syn(1) + bytes([34, 10] + [5] * 8) + NOP + NOP, b"GET"), SYN_COOKIE),
    Case("SYN of Windows, no timestamps", lambda f: f.up("S", windows_syn()), SYN_HASHED),
    Case("SYN without options", lambda f: f.up("S"), SYN_HASHED),
    Case("SYN with ECN", lambda f: f.up("SEC", linux_syn(1)), SYN_COOKIE),
    Case("SYN of macOS", lambda f: f.up("S", MSS + NOP + WINDOW_SCALE + stamped(1) + SACK_OK + bytes(2)), SYN_COOKIE),
    Case(
        "SYN with MPTCP",
        lambda f: f.up("S", MSS + SACK_OK + timestamp(1) + NOP + WINDOW_SCALE + bytes([30, 12] + [1] * 10)),
        SYN_COOKIE,
    ),
    *walked(Case("SYN with MD5", lambda f: f.up("S", NOP + NOP + bytes([19, 18] + [3] * 16) + MSS + stamped(1)), SYN_COOKIE)),
    Case("SYN, timestamps unaligned", lambda f: f.up("S", MSS + NOP + timestamp(1) + NOP), SYN_HASHED),
    Case("SYN, timestamps first and unpadded", lambda f: f.up("S", timestamp(1) + SACK_OK + MSS), SYN_HASHED),
    Case("data with cookie", data, COOKIE),
    Case("data without timestamps", lambda f: f.up("PA", b"", b"data"), HASHED),
    Case("pure ACK without timestamps", lambda f: f.up("A"), HASHED),
    Case("SACK alone", lambda f: f.up("A", sack(1, 2)), HASHED),
    Case("four SACK blocks", lambda f: f.up("A", sack(*range(8))), HASHED),
    Case("cookie, then SACK", lambda f: f.up("A", cookie(f) + sack(1, 2)), COOKIE),
    Case("cookie, then three SACK blocks", lambda f: f.up("A", cookie(f) + sack(*range(6))), COOKIE),
    *walked(Case("SACK, then cookie", lambda f: f.up("A", sack(1, 2) + cookie(f)), COOKIE)),
    *walked(Case("MD5, then cookie", lambda f: f.up("A", NOP + NOP + bytes([19, 18] + [3] * 16) + cookie(f)), COOKIE)),
    *walked(Case("MPTCP, then cookie", lambda f: f.up("A", bytes([30, 8] + [1] * 6) + cookie(f)), COOKIE)),
    Case("MPTCP of odd length, then cookie", lambda f: f.up("A", bytes([30, 7] + [1] * 5) + NOP + cookie(f)), HASHED),
    *walked(Case("unknown option, then cookie", lambda f: f.up("A", bytes([200, 4, 0, 0]) + cookie(f)), COOKIE)),
    Case("end of options, then cookie", lambda f: f.up("A", bytes(4) + cookie(f)), HASHED),
    Case("end of options behind NOPs, then cookie", lambda f: f.up("A", NOP + NOP + bytes([0, 2]) + cookie(f)), HASHED),
    Case("three NOPs and an option, then cookie", lambda f: f.up("A", NOP * 3 + bytes([2]) + cookie(f)), HASHED),
    Case(
        "timestamps of a wrong length, then cookie", lambda f: f.up("A", NOP + NOP + bytes([8, 6, 0, 0, 0, 0]) + cookie(f)), HASHED
    ),
    Case("option of length 0", lambda f: f.up("A", bytes([77, 0, 1, 1])), HASHED),
    Case("option of length 1", lambda f: f.up("A", bytes([77, 1, 1, 1])), HASHED),
    Case("option beyond the header", lambda f: f.up("A", bytes([77, 40, 0, 0])), HASHED),
    Case("timestamps beyond the header", lambda f: f.up("A", cookie(f)[:8], cookie(f)[8:]), HASHED),
    Case("values of timestamps beyond the header", lambda f: f.up("A", cookie(f)[:4], cookie(f)[4:]), HASHED),
    Case("timestamps in the payload", lambda f: f.up("A", b"", cookie(f)), HASHED),
    *sweep("data offset {}", range(5, 16), offset, HASHED),
    *walked(*sweep("data offset {}, cookie last", range(8, 16), lambda f, w: f.up("A", NOP * (4 * (w - 8)) + cookie(f)), COOKIE)),
    *sweep("data offset says {}", range(5), lambda f, w: offset(f, 5, w), "TCP_HEADER"),
    Case("data offset beyond the frame", lambda f: patched(f.up("A"), Frame(f.up("A")).l4 + 12, 0xF0), "TRUNCATED"),
    Case("data offset into the padding", lambda f: patched(f.up("A") + cookie(f), Frame(f.up("A")).l4 + 12, 0x80), "TCP_HEADER"),
]

TCP_FLAGS = [
    Case("no flags", flagged(0x00), "TCP_FLAGS"),
    Case("SYN and FIN", flagged(0x03), "TCP_FLAGS"),
    Case("SYN and RST", flagged(0x06), "TCP_FLAGS"),
    Case("all flags", flagged(0xFF), "TCP_FLAGS"),
    *[
        Case(f"flags {flags:#04x}", flagged(flags), COOKIE)
        for flags in (0x10, 0x18, 0x11, 0x04, 0x14, 0x12, 0x30, 0x50, 0x90, 0xD8)
    ],
    Case("reserved bits set by a client", lambda f: patched(data(f), Frame(data(f)).l4 + 12, 0x8A), COOKIE),
]

LINK = [
    Case("to another MAC", to_mac("02:00:00:00:00:99"), "NOT_LOCAL_MAC"),
    Case("to another port's MAC", to_mac(PORT_MAC[2]), "NOT_LOCAL_MAC"),
    Case("to the broadcast MAC", to_mac("ff:ff:ff:ff:ff:ff"), "MULTICAST"),
    Case("to a multicast MAC", to_mac("01:00:5e:00:00:01"), "MULTICAST"),
    Case("on a port that nothing describes", to_mac(PORT_MAC[5]), "PORT_UNKNOWN", 5),
    Case("VLAN", tagged(0x8100), "ETHERTYPE"),
    Case("VLAN of priority only", lambda f: data(f)[:12] + b"\x81\x00\xe0\x00" + data(f)[12:], "ETHERTYPE"),
    Case("service VLAN", tagged(0x88A8), "ETHERTYPE"),
    Case("two VLANs", lambda f: tagged(0x88A8)(f)[:16] + b"\x81\x00\x00\x06" + tagged(0x88A8)(f)[16:], "ETHERTYPE"),
    *[Case(f"EtherType {kind:#06x}", typed(kind), "ETHERTYPE") for kind in (0x88CC, 0x8847, 0x8864, 0x8035, 0x0026, 0xFFFF)],
]

TO_VIP = [
    Case(
        "TCP to another port of the VIP",
        lambda f: Flow(f.client, Endpoint(f.vip.address, 81)).up("S", linux_syn(1)),
        "VIP_NO_SERVICE",
    ),
    Case("UDP to the VIP", to_vip(UDP(sport=5, dport=80) / b"x"), "VIP_NO_SERVICE"),
    Case("SCTP to the VIP", to_vip(SCTP(sport=5, dport=80)), "VIP_NO_SERVICE"),
    Case("GRE to the VIP", to_vip(GRE() / b"xxxx"), "VIP_NO_SERVICE"),
    Case("TTL 1 to the VIP", lambda f: f.up("A", cookie(f), ttl=1), "TTL"),
    Case("TTL 0 to the VIP", lambda f: f.up("A", cookie(f), ttl=0), "TTL"),
    *sweep("{} bytes of TCP header", range(20), short, "TRUNCATED"),
    *sweep("{} bytes of TCP header in transit", range(20), lambda f, n: short(transit(f), n), TRANSIT),
    Case("data offset of 4 in transit", lambda f: offset(transit(f), 5, 4), TRANSIT),
    Case("SYN and FIN in transit", lambda f: flagged(0x03)(transit(f)), TRANSIT),
    Case("padding behind the packet", lambda f: data(f) + bytes(17), COOKIE),
    Case("a packet of 1,514 bytes", lambda f: f.up("PA", cookie(f), bytes(1514 - len(f.up("PA", cookie(f))))), COOKIE),
]

IPV4 = [
    *sweep("options to IHL {}", range(6, 16), lambda f, n: f.up("PA", cookie(f), b"x", between=NOP * (4 * (n - 5))), COOKIE),
    *sweep("SYN with IHL {}", range(6, 16), lambda f, n: f.up("S", MSS, between=NOP * (4 * (n - 5))), SYN_HASHED),
    *sweep("transit with IHL {}", range(6, 16), lambda f, n: transit(f).up("A", between=NOP * (4 * (n - 5))), TRANSIT),
    Case("router alert", lambda f: f.up("A", cookie(f), between=bytes([148, 4, 0, 0])), COOKIE),
    Case("record route", lambda f: f.up("A", cookie(f), between=bytes([7, 11, 4] + [0] * 8 + [0])), COOKIE),
    *sweep("IHL {}", range(5), lambda f, n: patched(data(f), 14, 0x40 | n, valid=False), "IPV4_HEADER"),
    *sweep("version {}", (0, 5, 6, 15), lambda f, n: patched(data(f), 14, n << 4 | 5), "IPV4_HEADER"),
    Case("total length beyond the frame", lambda f: patched(data(f), 16, 0, len(data(f)) - 13), "IPV4_HEADER"),
    Case("total length within the header", lambda f: patched(data(f), 16, 0, 19), "IPV4_HEADER"),
    Case("wrong header checksum", lambda f: patched(data(f), 24, 0, 0, valid=False), "IPV4_CHECKSUM"),
    Case("first fragment", lambda f: patched(data(f), 20, 0x20, 0x00), "VIP_FRAGMENT"),
    Case("middle fragment", lambda f: patched(data(f), 20, 0x20, 0xB9), "VIP_FRAGMENT"),
    Case("last fragment", lambda f: patched(data(f), 20, 0x00, 0xB9), "VIP_FRAGMENT"),
    Case("first fragment with options", lambda f: patched(f.up("A", between=NOP * 8), 20, 0x20, 0x00), "VIP_FRAGMENT"),
    Case("don't fragment", lambda f: patched(data(f), 20, 0x40, 0x00), COOKIE),
    Case("reserved flag", lambda f: patched(data(f), 20, 0x80, 0x00), COOKIE),
    *sweep("fragment in transit, {0:#x}", (0x20, 0x00, 0x3F), lambda f, b: patched(transit(f).up(), 20, b, 9), TRANSIT),
    Case("fragment of UDP to the VIP", lambda f: patched(to_vip(UDP() / b"x")(f), 20, 0x20, 0x00), "VIP_FRAGMENT"),
    *[
        Case(a, from_source(a), "MARTIAN_SOURCE")
        for a in ("0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.5", "240.1.1.1", "255.255.255.255")
    ],
    Case("ICMP unreachable without a quote", to_vip(ICMP(type=3, code=4) / bytes(28)), "ERROR_QUOTE", tofino="VIP_NO_SERVICE"),
    Case("ICMP time exceeded without a quote", to_vip(ICMP(type=11) / bytes(28)), "ERROR_QUOTE", tofino="VIP_NO_SERVICE"),
    Case("ICMP redirect", to_vip(ICMP(type=5) / bytes(28)), "VIP_NO_SERVICE"),
    Case("ICMP echo reply", to_vip(ICMP(type=0)), "VIP_NO_SERVICE"),
    Case("ICMP echo with a code", to_vip(ICMP(type=8, code=1)), "VIP_NO_SERVICE"),
    Case("ICMP fragment", lambda f: patched(to_vip(ICMP() / bytes(64))(f), 20, 0x20, 0x00), "VIP_FRAGMENT"),
    Case("to a multicast address", lambda f: Flow(f.client, Endpoint(ip_address("239.1.1.1"), 80)).up(), "NO_ROUTE"),
    *sweep("protocol {} in transit", (0, 2, 17, 41, 47, 50, 58, 132, 255), lambda f, n: patched(transit(f).up(), 23, n), TRANSIT),
]

IPV6 = [
    *[Case(f"{name} header", extended((name, 0)), COOKIE) for name in ("hop-by-hop", "routing", "destination")],
    *[
        Case(f"destination header of {8 + 8 * n} bytes", extended(("destination", n)), COOKIE, short_parser="VIP_EXTENSION")
        for n in range(1, 8)
    ],
    Case("two headers", extended(("hop-by-hop", 0), ("destination", 0)), COOKIE),
    Case(
        "all three headers", extended(("hop-by-hop", 0), ("routing", 2), ("destination", 1)), COOKIE, short_parser="VIP_EXTENSION"
    ),
    Case("eight headers", extended(*[("destination", 0)] * 8), COOKIE, short_parser="VIP_EXTENSION"),
    Case("nine headers", extended(*[("destination", 0)] * 9), "VIP_EXTENSION"),
    Case("a header of 72 bytes", extended(("destination", 8)), "VIP_EXTENSION"),
    Case("too much in the third header", extended(("hop-by-hop", 0), ("routing", 2), ("destination", 5)), "VIP_EXTENSION"),
    Case("SYN behind a header", lambda f: f.up("S", MSS, between=chain(("destination", 0))[0], first=60), SYN_HASHED),
    Case("fragment header", extended(("fragment", 0)), "VIP_FRAGMENT"),
    Case("fragment behind headers", extended(("hop-by-hop", 0), ("fragment", 0)), "VIP_FRAGMENT"),
    Case(
        "fragment behind long headers",
        extended(("hop-by-hop", 1), ("destination", 0), ("fragment", 0)),
        "VIP_FRAGMENT",
        short_parser="VIP_EXTENSION",
    ),
    Case("no next header", lambda f: patched(data(f), 20, 59, valid=False), "VIP_NO_SERVICE"),
    Case("no next header behind a header", extended(("destination", 0), last=59), "VIP_NO_SERVICE"),
    *sweep("next header {}", (17, 50, 51, 132, 135, 253), lambda f, n: patched(data(f), 20, n, valid=False), "VIP_NO_SERVICE"),
    Case(
        "extension header beyond the packet",
        lambda f: patched(extended(("destination", 0))(f), 55, 6, valid=False),
        "TRUNCATED",
        short_parser="VIP_EXTENSION",
    ),
    Case(
        "extension header beyond both",
        lambda f: patched(extended(("destination", 0))(f), 55, 255, valid=False),
        "TRUNCATED",
        short_parser="VIP_EXTENSION",
    ),
    *sweep("version {}", (0, 4, 7, 15), lambda f, n: patched(data(f), 14, n << 4, valid=False), "IPV6_HEADER"),
    Case("payload length beyond the frame", lambda f: patched(data(f), 18, 0, len(data(f)) - 53, valid=False), "IPV6_HEADER"),
    *[Case(a, from_source(a), "MARTIAN_SOURCE") for a in ("::", "::1", "ff02::1", "ff0e::9")],
    Case("ICMPv6 packet too big without a quote", to_vip(ICMPv6PacketTooBig() / bytes(48)), "ERROR_QUOTE", tofino="VIP_NO_SERVICE"),
    Case("ICMPv6 time exceeded, truncated", to_vip(ICMPv6TimeExceeded() / b"x"), "TRUNCATED", tofino="VIP_NO_SERVICE"),
    Case("ICMPv6 echo with a code", to_vip(ICMPv6EchoRequest(code=1)), "VIP_NO_SERVICE"),
    *sweep("{} headers in transit", (1, 8, 9, 20), lambda f, n: extended(*[("destination", 0)] * n)(transit(f)), TRANSIT),
    Case("fragment in transit", lambda f: extended(("fragment", 0))(transit(f)), TRANSIT),
    *sweep("next header {} in transit", (1, 17, 50, 59, 253), lambda f, n: patched(transit(f).up(), 20, n, valid=False), TRANSIT),
]


def arp(_: Flow) -> bytes:
    return bytes(
        Ether(src=NEIGHBOR_MAC[1], dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=NEIGHBOR_MAC[1], psrc="198.51.100.7", pdst="192.0.2.1")
    )


def truncations(make: Callable[[Flow], bytes], header: int, whole: int, then: str) -> Iterable[Case]:
    """Return the frame cut at every byte. Within the Ethernet, IP or ARP header it is truncated; after an IP header
    its length is wrong."""
    yield from sweep("cut to {} bytes", range(14, header), lambda f, n: make(f)[:n], "TRUNCATED")
    yield from sweep("cut to {} bytes", range(header, whole), lambda f, n: make(f)[:n], then)


class LossOfIpv4(LossTest):
    """IPv4 options, fragments, martians, ICMP."""

    def runTest(self) -> None:
        self.doRunTest([*LINK, *TO_VIP, *IPV4])


class LossOfTcpOverIpv4(LossTest):
    """TCP options, data offsets and flags over IPv4."""

    def runTest(self) -> None:
        self.doRunTest([*TCP_OPTIONS, *TCP_FLAGS])


class LossOfIpv6(LossTest):
    """IPv6 extension headers, fragments, martians, ICMPv6."""

    address, dip = "2001:db8:f::1", "fd12:3456:a::9"

    def runTest(self) -> None:
        self.doRunTest([*LINK, *TO_VIP, *IPV6])


class LossOfTcpOverIpv6(LossTest):
    """TCP options, data offsets and flags over IPv6."""

    address, dip = "2001:db8:f::1", "fd12:3456:a::9"

    def runTest(self) -> None:
        self.doRunTest([*TCP_OPTIONS, *TCP_FLAGS])


class LossOfTruncatedIpv4(LossTest):
    """An IPv4 segment with a cookie, and an ARP request, cut at every byte."""

    def runTest(self) -> None:
        self.doRunTest(truncations(data, 14 + 20, len(data(self.flow(0))), "IPV4_HEADER"))
        self.doRunTest(truncations(arp, 42, 42, ""))


class LossOfTruncatedIpv6(LossTest):
    """An IPv6 segment with a cookie, plain and after extension headers, cut at every byte."""

    address, dip = "2001:db8:f::1", "fd12:3456:a::9"

    def runTest(self) -> None:
        self.doRunTest(truncations(data, 14 + 40, len(data(self.flow(0))), "IPV6_HEADER"))
        make = extended(("hop-by-hop", 0), ("destination", 1))
        self.doRunTest(truncations(make, 14 + 40, len(make(self.flow(0))), "IPV6_HEADER"))

# SPDX-License-Identifier: Apache-2.0
"""Packets from servers: every kind is forwarded, or dropped for a named reason. One line per case."""

from collections.abc import Callable, Iterable

from frontage_ptf.frame import Frame
from frontage_ptf.loss import Case, LossTest, chain, offset, patched, short, sweep, walked
from frontage_ptf.packets import MSS, NEIGHBOR_MAC, NOP, PORT_MAC, Endpoint, Flow, linux_syn, sack, stamped, windows_syn
from frontage_ptf.switch import KEY

# Fates: from the VIP with only the address changed; with the cookie masked; or routed to the client as transit.
PLAIN, MASKED, ROUTED = "as the VIP's", "as the VIP's, masked", "routed"

CLOCK = 0x1234
DYNAMIC = CLOCK << 16 | 0xBEEF


def marked(frame: bytes) -> bytes:
    """Return a segment with CK set: TSval holds a dynamic cookie."""
    at = Frame(frame).l4 + 12
    return patched(frame, at, frame[at] | 8)


def cookie(f: Flow) -> bytes:
    return marked(f.up("PA", stamped(DYNAMIC, 9), b"data", port=3))


def options(raw: bytes, flags: str = "A") -> Callable[[Flow], bytes]:
    return lambda f: marked(f.up(flags, raw, b"data", port=3))


def plain(raw: bytes, flags: str = "A") -> Callable[[Flow], bytes]:
    return lambda f: f.up(flags, raw, b"data", port=3)


def from_port_3(make: Callable[[Flow, int], bytes]) -> Callable[[Flow, int], bytes]:
    """Move a frame from the clients' port to the servers'."""
    return lambda f, n: at_port_3(make(f, n))


def at_port_3(frame: bytes) -> bytes:
    macs = bytes.fromhex((PORT_MAC[3] + NEIGHBOR_MAC[3]).replace(":", ""))
    return macs + frame[12:]


TCP = [
    Case("SYN-ACK of Linux", options(linux_syn(DYNAMIC, 9), "SA"), MASKED),
    Case("SYN-ACK of Linux without agent", plain(linux_syn(DYNAMIC, 9), "SA"), PLAIN),
    Case("SYN-ACK without timestamps", plain(windows_syn(), "SA"), PLAIN),
    Case("SYN of a server", plain(linux_syn(DYNAMIC), "S"), PLAIN),
    Case("data with cookie", cookie, MASKED),
    Case("data without agent", plain(stamped(DYNAMIC, 9), "PA"), PLAIN),
    Case("data without options", plain(b""), PLAIN),
    Case("FIN", options(stamped(DYNAMIC, 9), "FA"), MASKED),
    Case("RST without options", plain(b"", "R"), PLAIN),
    Case("cookie, then SACK", options(stamped(DYNAMIC, 9) + sack(1, 2)), MASKED),
    *walked(Case("SACK, then cookie", options(sack(1, 2) + stamped(DYNAMIC, 9)), MASKED)),
    Case("three SACK blocks", options(stamped(DYNAMIC, 9) + sack(*range(6))), MASKED),
    *walked(Case("MD5, then cookie", options(NOP + NOP + bytes([19, 18] + [3] * 16) + stamped(DYNAMIC, 9)), MASKED)),
    Case("cookie, then MPTCP", options(stamped(DYNAMIC, 9) + bytes([30, 20] + [1] * 18)), MASKED),
    Case("MSS, then cookie", options(MSS + stamped(DYNAMIC, 9)), MASKED),
    *sweep("data offset {}", range(5, 16), from_port_3(offset), PLAIN),
    *walked(
        *sweep(
            "data offset {}, cookie last", range(8, 16), lambda f, w: options(NOP * (4 * (w - 8)) + stamped(DYNAMIC, 9))(f), MASKED
        )
    ),
    *sweep("data offset says {}", range(5), from_port_3(lambda f, w: offset(f, 5, w)), "TCP_HEADER"),
    *sweep("flags {0:#04x}", (0, 3, 6, 0xFF), from_port_3(lambda f, n: patched(f.up(), Frame(f.up()).l4 + 13, n)), PLAIN),
    *sweep("{} bytes of TCP header", range(20), from_port_3(short), ROUTED),
    Case("padding behind the packet", lambda f: cookie(f) + bytes(9), MASKED),
    Case("TTL 1", lambda f: f.up(ttl=1, port=3), "TTL"),
    Case("from the clients' side", lambda f: f.up(port=1), "SPOOFED_SOURCE", 1),
    Case("from another port of the server", lambda f: Flow(Endpoint(f.client.address, 22), f.vip).up(port=3), ROUTED),
]

IPV4 = [
    *sweep("IHL {}", range(6, 16), lambda f, n: f.up("A", stamped(7, 9), between=NOP * (4 * (n - 5)), port=3), PLAIN),
    *sweep(
        "IHL {} with cookie",
        range(6, 16),
        lambda f, n: marked(f.up("A", stamped(DYNAMIC, 9), between=NOP * (4 * (n - 5)), port=3)),
        MASKED,
    ),
    Case("first fragment", lambda f: patched(f.up(port=3), 20, 0x20, 0), ROUTED),
    Case("last fragment", lambda f: patched(f.up(port=3), 20, 0, 9), ROUTED),
    Case("don't fragment", lambda f: patched(cookie(f), 20, 0x40, 0), MASKED),
]


def behind(*headers: tuple[str, int]) -> Callable[[Flow], bytes]:
    raw, first = chain(*headers)
    return lambda f: marked(f.up("PA", stamped(DYNAMIC, 9), b"data", between=raw, first=first, port=3))


IPV6 = [
    *[Case(f"{name} header", behind((name, 0)), MASKED) for name in ("hop-by-hop", "routing", "destination")],
    Case("all three", behind(("hop-by-hop", 0), ("routing", 2), ("destination", 1)), MASKED, short_parser=ROUTED),
    Case("two headers", behind(*[("destination", 0)] * 2), MASKED),
    Case("eight headers", behind(*[("destination", 0)] * 8), MASKED, short_parser=ROUTED),
    Case("nine headers", behind(*[("destination", 0)] * 9), ROUTED),
    Case("fragment header", lambda f: f.up("PA", b"", b"data", between=chain(("fragment", 0))[0], first=44, port=3), ROUTED),
]


class BackTest(LossTest):
    """Cases see the connection from the server's end: its client is the second server, its VIP the client."""

    def setUp(self) -> None:
        super().setUp()
        self.site.activate_key(KEY)

    def flow(self, number: int) -> Flow:
        return Flow(self.servers[1].dip, super().flow(number).client)

    def doRunTest(self, cases: Iterable[Case]) -> None:
        super().doRunTest(case._replace(port=case.port if case.fate == "SPOOFED_SOURCE" else 3) for case in cases)

    def check(self, case: Case, frame: bytes) -> None:
        if case.fate == PLAIN:
            self.comes_back(self.vip, frame, "NO_INSIGHT")
        elif case.fate == MASKED:
            client = Endpoint(Frame(frame).dst, Frame(frame).dport)
            tsval = KEY.static_tsval(101, Flow(client, self.vip.at).hash, CLOCK)
            self.comes_back(self.vip, frame, "INSIGHT", tsval=tsval, ck=0)
        elif case.fate == ROUTED:
            self.passes(case.port, frame, 1, Frame(frame).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1])))
        else:
            super().check(case, frame)


class BackOverIpv4(BackTest):
    """From a server of an IPv4 VIP."""

    def runTest(self) -> None:
        self.doRunTest([*TCP, *IPV4])


class BackOverIpv6(BackTest):
    """From a server of an IPv6 VIP."""

    address, dip = "2001:db8:f::1", "fd12:3456:a::9"

    def runTest(self) -> None:
        self.doRunTest([*TCP, *IPV6])

# SPDX-License-Identifier: Apache-2.0
"""Kinds of packets, each with its fate: forwarded in a certain way, or dropped for a named reason."""

from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import NamedTuple

from scapy.all import IP as Ip4
from scapy.all import IPv6, Packet

from frontage_ptf.balancer import TCP_CONTROL
from frontage_ptf.frame import Frame, ipv4_valid, overwritten
from frontage_ptf.packets import NEIGHBOR_MAC, NOP, PORT_MAC, Endpoint, Flow, ethernet, linux_syn, stamped
from frontage_ptf.site import HASH, Server, Vip
from frontage_ptf.switch import KEY, FrontageTest

# Fates other than drops: the server of the cookie, Maglev's server (for a SYN or data), and transit to port 2.
COOKIE, SYN_COOKIE, SYN_HASHED, HASHED, TRANSIT = "by cookie", "SYN by policy", "SYN by hash", "by hash", "transit"

OTHER = {4: ip_address("203.0.113.9"), 6: ip_address("2001:db8:2::9")}
NEXT = {"hop-by-hop": 0, "routing": 43, "fragment": 44, "destination": 60}


class Case(NamedTuple):
    name: str
    make: Callable[[Flow], bytes]
    fate: str
    port: int = 1
    short_parser: str = ""
    """The fate, if it differs, with a parser that follows only two IPv6 extension headers of 8 bytes."""
    walked: bool = False
    """Whether only a parser that walks all options finds the timestamps."""
    tofino: str = ""
    """The fate, if it differs, with a program for Tofino."""


def walked(*cases: Case) -> list[Case]:
    """Return the cases for parsers that walk all options."""
    return [case._replace(walked=True) for case in cases]


def sweep(name: str, values: Iterable[int], make: Callable[[Flow, int], bytes], fate: str) -> list[Case]:
    """Return the same case for each of the numbers."""

    def one(number: int) -> Case:
        return Case(name.format(number), lambda flow: make(flow, number), fate)

    return [one(number) for number in values]


def cookie(flow: Flow) -> bytes:
    """Return the options of a segment with the second server's cookie."""
    return stamped(8, KEY.static_tsval(101, flow.hash, 1))


def data(flow: Flow) -> bytes:
    return flow.up("PA", cookie(flow), b"data")


def transit(flow: Flow) -> Flow:
    return Flow(flow.client, Endpoint(OTHER[flow.client.address.version], 80))


def patched(frame: bytes, at: int, *values: int, valid: bool = True) -> bytes:
    """Return the frame with bytes replaced, and with correct checksums if `valid`."""
    changed = overwritten(frame, at, *values)
    return Frame(changed).with_checksums() if valid else changed


def offset(flow: Flow, words: int, claims: int | None = None) -> bytes:
    """Return a segment whose header has `words` words, filled with NOPs, or claims another length."""
    frame = flow.up("A", NOP * (4 * (words - 5)), b"data" * 4)
    at = Frame(frame).l4 + 12
    return frame if claims is None else patched(frame, at, claims << 4)


def short(flow: Flow, length: int) -> bytes:
    """Return a packet whose IP header claims only the beginning of a TCP header."""
    frame = flow.up()
    l4 = Frame(frame).l4
    at = 16 if flow.client.address.version == 4 else 18
    total = length if at == 18 else length + 20
    cut = bytearray(frame[: l4 + length])
    cut[at : at + 2] = total.to_bytes(2, "big")
    return ipv4_valid(bytes(cut))


def chain(*headers: tuple[str, int], last: int = 6) -> tuple[bytes, int]:
    """Return IPv6 extension headers (name, units of 8 bytes beyond the first), and the type of the first of them."""
    types = [NEXT[name] for name, _ in headers] + [last]
    raw = b"".join(
        bytes([types[i + 1], units]) + bytes([1, 4 + 8 * units, 0, 0, 0, 0]) + bytes(8 * units)
        for i, (_, units) in enumerate(headers)
    )
    return raw, types[0]


def extended(*headers: tuple[str, int], last: int = 6) -> Callable[[Flow], bytes]:
    raw, first = chain(*headers, last=last)
    return lambda f: f.up("PA", cookie(f), b"data", between=raw, first=first)


def flagged(flags: int) -> Callable[[Flow], bytes]:
    return lambda f: patched(data(f), Frame(data(f)).l4 + 13, flags)


def to_vip(payload: Packet) -> Callable[[Flow], bytes]:
    """Return a maker of packets other than TCP to a VIP's address."""

    def make(flow: Flow) -> bytes:
        head = Ip4 if flow.client.address.version == 4 else IPv6
        return bytes(ethernet(1) / head(src=str(flow.client.address), dst=str(flow.vip.address)) / payload)

    return make


def typed(ether_type: int) -> Callable[[Flow], bytes]:
    return lambda f: patched(data(f), 12, ether_type >> 8, ether_type & 255, valid=False)


def tagged(ether_type: int) -> Callable[[Flow], bytes]:
    return lambda f: data(f)[:12] + ether_type.to_bytes(2, "big") + b"\x00\x05" + data(f)[12:]


def from_source(address: str) -> Callable[[Flow], bytes]:
    return lambda f: Flow(Endpoint(ip_address(address), 4000), f.vip).up("S", linux_syn(1))


def to_mac(mac: str) -> Callable[[Flow], bytes]:
    return lambda f: bytes.fromhex(mac.replace(":", "")) + data(f)[6:]


class LossTest(FrontageTest):
    """A VIP of two servers: `cookie()` names the second one, and Maglev gives all slots to the first."""

    control = TCP_CONTROL

    address, dip = "192.0.2.1", "10.1.0.9"

    def setUp(self) -> None:
        super().setUp()
        self.servers = [Server(100 + i, Endpoint(ip_address(self.dip) + i, 8080)) for i in range(2)]
        self.vip = Vip(1, Endpoint(ip_address(self.address), 80), self.servers, policy=HASH)
        self.site.add_vip(self.vip)
        self.site.set_maglev(self.vip, [100, 100])
        self.site.install_key(KEY)

    def flow(self, number: int) -> Flow:
        """Return a connection of a separate client for each case, so that no case finds another's connection table
        entry."""
        client = "198.51.100.7" if self.vip.at.address.version == 4 else "2001:db8:1::7"
        return Flow(Endpoint(ip_address(client), 2000 + number), self.vip.at)

    def doRunTest(self, cases: Iterable[Case]) -> None:
        for number, case in enumerate(cases):
            if case.walked and not self.client.program.walks_options:
                continue
            with self.subTest(case.name):
                if case.short_parser and not self.client.program.follows_long_extensions:
                    case = case._replace(fate=case.short_parser)
                if case.tofino and self.target == "tna":
                    case = case._replace(fate=case.tofino)
                self.check(case, case.make(self.flow(number)))

    def check(self, case: Case, frame: bytes) -> None:
        first, second = self.servers
        if case.fate == COOKIE:
            self.goes_to(second, frame, "RETRIEVED_COOKIE", case.port)
        elif case.fate == SYN_COOKIE:
            self.goes_to(first, frame, "ASSIGNED_HASH", case.port)
        elif case.fate == SYN_HASHED:
            self.goes_to(first, frame, "ASSIGNED_FALLBACK", case.port)
        elif case.fate == HASHED:
            self.goes_to(first, frame, "HASHED_NO_COOKIE", case.port)
        elif case.fate == TRANSIT:
            self.passes(case.port, frame, 2, Frame(frame).rewritten((PORT_MAC[2], NEIGHBOR_MAC[2])))
        else:
            self.drops(case.port, frame, case.fate)

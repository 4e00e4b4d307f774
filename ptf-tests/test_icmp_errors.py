# SPDX-License-Identifier: Apache-2.0
"""ICMP errors about segments of VIPs: they reach the server that the quote names, which gets a quote of its own packet."""

import time
from ipaddress import ip_address

from frontage_ptf.balancer import VIP4, VIP6, BalancerTest
from frontage_ptf.frame import ICMP6, Frame, overwritten
from frontage_ptf.icmp import (
    KINDS,
    MTU,
    PORT_UNREACHABLE,
    ROUTER,
    TOO_BIG,
    Kind,
    error,
    forwarded,
    packet_of,
    with_message_checksum,
)
from frontage_ptf.packets import MSS, NEIGHBOR_MAC, NOP, PORT_MAC, SACK_OK, WINDOW_SCALE, Endpoint, Flow, sack, stamped, timestamp
from frontage_ptf.site import CCLB4, CHEETAH_LL, HASH, Server, Vip, port_of
from frontage_ptf.switch import KEY

DATA = bytes(range(200)) * 6


class ErrorTest(BalancerTest):
    """VIPs over IPv4 and IPv6, and errors from a router on the way to the clients."""

    def setUp(self) -> None:
        super().setUp()
        if self.target == "tna":
            self.skipTest("the programs for Tofino do not deliver ICMP errors")
        self.vips = [self.make_vip(4, 1, VIP4), self.make_vip(4, 2, VIP6, base=4, first_sid=200)]

    def stamped(self, flow: Flow, server: Server) -> bytes:
        """Return the options of a segment that the client gets from this server."""
        return stamped(KEY.static_tsval(server.sid, flow.hash, 1), 8)

    def about(
        self, flow: Flow, options: bytes, length: int | None = None, kind: Kind = TOO_BIG, flags: str = "A", payload: bytes = DATA
    ) -> bytes:
        """Return an error about a segment from the VIP to the client, of which it quotes `length` bytes behind the IP header."""
        sent = flow.down(flow.vip, flags, options, payload)
        return error(kind, ROUTER[flow.vip.address.version], flow.vip.address, packet_of(sent, length))

    def reaches(
        self,
        server: Server,
        flow: Flow,
        options: bytes,
        outcome: str,
        length: int | None = None,
        kind: Kind = TOO_BIG,
        flags: str = "A",
        payload: bytes = DATA,
    ) -> None:
        """Check that the error reaches the server, with a quote of the segment as the server sent it."""
        own = packet_of(flow.down(server.dip, flags, options, payload), length)
        expected = error(kind, ROUTER[flow.vip.address.version], server.dip.address, own)
        self.passes(
            1, self.about(flow, options, length, kind, flags, payload), port_of(server.dip.address), forwarded(expected), outcome
        )


class CookieInTheQuoteNamesTheServer(ErrorTest):
    """Errors of every type reach the server whose cookie is in the quoted TSval."""

    def runTest(self) -> None:
        for vip in self.vips:
            for server in vip.servers:
                flow = self.new_flow(vip)
                for kind in KINDS:
                    with self.subTest(kind.name):
                        self.reaches(server, flow, self.stamped(flow, server), "ERROR_RETRIEVED", kind=kind)
                        self.reaches(server, flow, self.stamped(flow, server), "ERROR_RETRIEVED", 548, kind)
                        self.reaches(server, flow, self.stamped(flow, server), "ERROR_RETRIEVED", 32, kind)


class QuotesOfEveryLayout(ErrorTest):
    """Timestamps are found behind MSS, as in a SYN-ACK, and before SACK."""

    def runTest(self) -> None:
        for vip in self.vips:
            server, flow = vip.servers[2], self.new_flow(vip)
            tsval = KEY.static_tsval(server.sid, flow.hash, 1)
            for name, flags, options in (
                ("data", "PA", stamped(tsval, 1)),
                ("before SACK", "A", stamped(tsval, 1) + sack(1, 2, 3, 4)),
                ("SYN-ACK", "SA", MSS + SACK_OK + timestamp(tsval, 1) + NOP + WINDOW_SCALE),
                ("SYN-ACK without SACK", "SA", MSS + stamped(tsval, 1) + NOP + WINDOW_SCALE),
                ("FIN", "FA", stamped(tsval, 1)),
            ):
                with self.subTest(name):
                    self.reaches(server, flow, options, "ERROR_RETRIEVED", flags=flags)


class ConnectionTableFindsTheServer(ErrorTest):
    """Without a cookie in the quote, the connection table names the server, also when the quote has only 8 bytes of TCP."""

    def runTest(self) -> None:
        for vip in self.vips:
            flow = self.new_flow(vip)
            server = vip.servers[flow.hash & 3]
            self.goes_to(server, flow.up("S", MSS), "ASSIGNED_FALLBACK")
            other = vip.servers[(flow.hash & 3) ^ 1]
            self.site.set_maglev(vip, [other.sid] * 4)
            for length in (None, 28, 8):
                self.reaches(server, flow, b"", "ERROR_RETRIEVED", length)
            stranger = self.new_flow(vip)
            self.reaches(other, stranger, b"", "ERROR_HASHED")


class ErrorsDoNotRefreshTheConnectionTable(ErrorTest):
    """An entry expires although errors arrive, which anybody can forge."""

    timeout = 1

    def runTest(self) -> None:
        vip = self.vips[0]
        flow = self.new_flow(vip)
        server = vip.servers[flow.hash & 3]
        self.goes_to(server, flow.up("S", MSS), "ASSIGNED_FALLBACK")
        end = time.monotonic() + 3.5
        while time.monotonic() < end:
            self.fate(1, self.about(flow, b""))
        self.reaches(server, flow, b"", "ERROR_HASHED")


class ShortQuotesGoByTheHash(ErrorTest):
    """RFC 792 asks for only 8 bytes of the segment: no cookie, so the hash selects the server. The same holds for a cookie
    that does not unseal."""

    def runTest(self) -> None:
        for vip in self.vips:
            flow = self.new_flow(vip)
            hashed = vip.servers[flow.hash & 3]
            server = vip.servers[(flow.hash & 3) ^ 2]
            for length in (8, 20, 28, 31):
                self.reaches(hashed, flow, self.stamped(flow, server), "ERROR_HASHED", length)
            self.reaches(hashed, flow, stamped(0, 1), "ERROR_HASHED")


class RecentPacketsNameTheServerOfShortQuotes(ErrorTest):
    """An error answers a segment that has just left: its server gets the error although the quote has no cookie."""

    def runTest(self) -> None:
        for vip in self.vips:
            flow = self.new_flow(vip)
            server = vip.servers[(flow.hash & 3) ^ 2]
            options = self.stamped(flow, server)
            self.comes_back(vip, flow.down(server.dip, "PA", options, b"data"), "NO_INSIGHT")
            for length in (8, 20, 31):
                self.reaches(server, flow, options, "ERROR_RETRIEVED", length)
            other = vip.servers[(flow.hash & 3) ^ 3]
            self.reaches(other, flow, self.stamped(flow, other), "ERROR_RETRIEVED")


class ErrorsChangeNoState(ErrorTest):
    """Errors neither release entries nor count as ends of connections, under any policy."""

    def runTest(self) -> None:
        self.add_class(0, 0.5)
        vip = self.vips[0]
        for policy in (CHEETAH_LL, CCLB4, HASH):
            vip.policy = policy
            self.site.update_policy(vip)
            self.seed(vip, *vip.servers)
            flow, server = self.new_flow(vip), vip.servers[0]
            for flags in ("A", "FA", "R"):
                self.reaches(server, flow, self.stamped(flow, server), "ERROR_RETRIEVED", flags=flags)
            if self.is_softswitch:
                for slot in (s.slot for s in vip.servers):
                    self.assertEqual(self.leaves.at[slot], self.leaf(slot))


class ServersSendErrorsFromTheVip(ErrorTest):
    """An error about a client's packet leaves with the VIP as source, whether a server or a router behind the switch sent it,
    and quotes the packet as the client sent it."""

    def runTest(self) -> None:
        for vip in self.vips:
            server, flow = vip.servers[1], self.new_flow(vip)
            inner = Flow(flow.client, server.dip)
            router = ip_address("10.1.255.1") if vip.at.address.version == 4 else ip_address("fd12:3456:a::ff")
            options = self.echoed(flow, server)
            for reporter in (server.dip.address, router):
                for kind in KINDS:
                    for length in (None, 548, 8):
                        quote = packet_of(inner.up("PA", options, DATA), length)
                        sent = error(kind, reporter, flow.client.address, quote, port=3)
                        own = packet_of(flow.up("PA", options, DATA), length)
                        expected = forwarded(error(kind, vip.at.address, flow.client.address, own))
                        self.passes(3, sent, 1, expected, "NO_INSIGHT")
            forged = error(TOO_BIG, ROUTER[vip.at.address.version], flow.client.address, packet_of(inner.up("A", options)))
            self.drops(1, forged, "SPOOFED_SOURCE")


class ErrorsOfOthersPassUnchanged(ErrorTest):
    """Errors that do not concern a VIP are forwarded byte by byte, whatever they quote."""

    def runTest(self) -> None:
        for address, target in (("203.0.113.9", "198.51.100.7"), ("2001:db8:2::9", "2001:db8:1::7")):
            here = Flow(Endpoint(ip_address(target), 4000), Endpoint(ip_address(address), 80))
            version = here.vip.address.version
            whole = packet_of(here.down(here.vip, "A", stamped(1, 2), DATA))
            for kind in KINDS:
                for length in (*range(0, 44, 4), 100, len(whole)):
                    sent = error(kind, ROUTER[version], here.vip.address, whole[:length])
                    self.passes(1, sent, 2, forwarded(sent))
            other = Flow(Endpoint(ip_address(target), 4000), Endpoint(here.client.address, 80))
            sent = error(TOO_BIG, ROUTER[version], here.vip.address, packet_of(other.up("A", stamped(1, 2))))
            self.passes(1, sent, 2, forwarded(sent))


class UnusableQuotesDrop(ErrorTest):
    """Errors to a VIP whose quote does not name a connection are dropped, each for a named reason."""

    def runTest(self) -> None:
        for vip in self.vips:
            version, server, flow = vip.at.address.version, vip.servers[0], self.new_flow(vip)
            quote = packet_of(flow.down(vip.at, "A", self.stamped(flow, server), DATA))
            head = 20 if version == 4 else 40
            protocol_at = 9 if version == 4 else 6
            foreign = Endpoint(ip_address("203.0.113.9" if version == 4 else "2001:db8:2::9"), vip.at.port)
            cases = {
                "no quote": (b"", "TRUNCATED"),
                "half an IP header": (quote[: head // 2], "TRUNCATED"),
                "an IP header": (quote[:head], "TRUNCATED"),
                "half of the ports": (quote[: head + 2], "TRUNCATED"),
                "ports without a sequence number": (quote[: head + 4], "ERROR_QUOTE"),
                "another IP version": (overwritten(quote, 0, 0x55), "ERROR_QUOTE"),
                "SCTP": (overwritten(quote, protocol_at, 132), "ERROR_QUOTE"),
                "an ICMP error": (overwritten(quote, protocol_at, 1), "ERROR_QUOTE"),
                "a packet of another sender": (packet_of(flow.down(foreign, "A", self.stamped(flow, server))), "ERROR_QUOTE"),
                "a service that does not exist": (packet_of(flow.down(Endpoint(vip.at.address, 9), "A")), "VIP_NO_SERVICE"),
                "timestamps cut off": (packet_of(flow.down(vip.at, "SA", MSS + stamped(1, 2)))[: head + 34], "TRUNCATED"),
            }
            if version == 4:
                cases |= {
                    "a later fragment": (overwritten(quote, 6, 0x00, 0x10), "ERROR_QUOTE"),
                    "IP options": (overwritten(quote, 0, 0x46), "ERROR_QUOTE"),
                }
            for name, (bad, reason) in cases.items():
                with self.subTest(name, version=version):
                    self.drops(1, error(TOO_BIG, ROUTER[version], vip.at.address, bad), reason)


class PaddingIsNotPartOfTheQuote(ErrorTest):
    """The length of the IP packet ends the quote: what follows in the frame names no server."""

    def runTest(self) -> None:
        for vip in self.vips:
            flow = self.new_flow(vip)
            hashed, server = vip.servers[flow.hash & 3], vip.servers[(flow.hash & 3) ^ 1]
            options = self.stamped(flow, server)
            rest = packet_of(flow.down(vip.at, "A", options))[Frame(flow.down(vip.at)).l4 - 14 + 8 :]
            own = error(
                TOO_BIG, ROUTER[vip.at.address.version], hashed.dip.address, packet_of(flow.down(hashed.dip, "A", options, DATA), 8)
            )
            self.passes(1, self.about(flow, options, 8) + rest, port_of(hashed.dip.address), forwarded(own) + rest, "ERROR_HASHED")
            short = self.about(flow, options, 4)
            self.drops(1, short + rest, "ERROR_QUOTE")


class ServersOfOtherSwitches(ErrorTest):
    """A server that has gone gets no errors; a draining one does."""

    def runTest(self) -> None:
        vip = self.vips[0]
        server, left = vip.servers[0], vip.servers[1]
        flow = self.new_flow(vip)
        server.active = False
        self.site.update_server(vip, server)
        self.reaches(server, flow, self.stamped(flow, server), "ERROR_RETRIEVED")
        self.site.delete(self.site.to_server(server))
        self.drops(1, self.about(flow, self.stamped(flow, server)), "SERVER_GONE")
        self.site.delete(self.site.member(vip, server))
        self.site.set_maglev(vip, [left.sid] * 4)
        self.reaches(left, flow, self.stamped(flow, server), "ERROR_HASHED")


class ErrorsWithOptionsAndExtensions(ErrorTest):
    """The error's own IPv4 options and IPv6 extension headers stay, and its hop limit counts."""

    def runTest(self) -> None:
        for vip in self.vips:
            version, server, flow = vip.at.address.version, vip.servers[3], self.new_flow(vip)
            options = self.stamped(flow, server)
            between, first = (NOP * 8, None) if version == 4 else (bytes([ICMP6, 0, 1, 4, 0, 0, 0, 0]), 60)
            quote, own = packet_of(flow.down(vip.at, "A", options, DATA)), packet_of(flow.down(server.dip, "A", options, DATA))
            sent = error(TOO_BIG, ROUTER[version], vip.at.address, quote, between=between, first=first)
            expected = forwarded(error(TOO_BIG, ROUTER[version], server.dip.address, own, between=between, first=first))
            self.passes(1, sent, port_of(server.dip.address), expected, "ERROR_RETRIEVED")
            self.drops(1, error(TOO_BIG, ROUTER[version], vip.at.address, quote, ttl=1), "TTL")


class WrongChecksumsStayWrong(ErrorTest):
    """Checksums are updated by difference: the switch does not make a damaged error or quote valid."""

    def runTest(self) -> None:
        for vip in self.vips:
            version, server, flow = vip.at.address.version, vip.servers[3], self.new_flow(vip)
            options = self.stamped(flow, server)
            good = self.about(flow, options)
            at = Frame(good).l4
            wrong = overwritten(good, len(good) - 9, good[-9] ^ 0x40)
            fate = self.fate(1, wrong)
            self.assertEqual(port_of(server.dip.address), fate.port, str(fate))
            self.assertNotEqual(with_message_checksum(fate.frame), fate.frame)
            right = self.fate(1, good).frame
            self.assertEqual(with_message_checksum(right), right)
            self.assertEqual(right[at + 2 : at + 4], fate.frame[at + 2 : at + 4])
            self.assertEqual(MTU, int.from_bytes(right[at + 6 : at + 8], "big"))
            self.assertEqual((PORT_MAC[3], NEIGHBOR_MAC[3]), tuple(right[i : i + 6].hex(":") for i in (6, 0)))
            self.assertEqual(ROUTER[version], Frame(right).src)


class ServicesOfAnotherPort(ErrorTest):
    """VIPs at the same address with servers at other ports: the quoted ports select the service, and are rewritten."""

    def runTest(self) -> None:
        other: Vip = self.make_vip(2, 3, Endpoint(VIP4.address, 8443), base=8, first_sid=300)
        for server in other.servers:
            flow = self.new_flow(other)
            self.reaches(server, flow, self.stamped(flow, server), "ERROR_RETRIEVED")
        flow = self.new_flow(other)
        sent = error(PORT_UNREACHABLE, other.servers[0].dip.address, flow.client.address, packet_of(flow.up("A")), port=3)
        self.passes(3, sent, 1, forwarded(sent))

# SPDX-License-Identifier: Apache-2.0
"""ICMP errors about QUIC packets: the quoted cookie address or the handshake table names the server."""

from ipaddress import IPv6Address

from frontage_ptf.balancer import VIP4, VIP6
from frontage_ptf.frame import overwritten
from frontage_ptf.icmp import KINDS, ROUTER, TOO_BIG, Kind, error, forwarded, packet_of
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import QUIC4, QUIC6, Conversation, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import CHEETAH_RR, Server, port_of
from frontage_ptf.switch import KEY

PAYLOAD = short(b"\x11" * 8, 1352)


class QuicErrorTest(QuicTest):
    """QUIC services over IPv4 and IPv6, and errors from a router on the way to the clients."""

    def setUp(self) -> None:
        super().setUp()
        if self.target == "tna":
            self.skipTest("the programs for Tofino do not deliver ICMP errors")
        self.vips = [self.make_quic(4, 7, QUIC6), self.make_quic(4, 8, QUIC4, base=32, first_sid=800)]

    def about(
        self, talk: Conversation, seen: Endpoint, payload: bytes = PAYLOAD, length: int | None = None, kind: Kind = TOO_BIG
    ) -> bytes:
        """Return an error about a datagram that left from `seen`."""
        quote = packet_of(talk.response(seen, payload), length)
        return error(kind, ROUTER[seen.address.version], seen.address, quote)

    def reaches(
        self,
        server: Server,
        talk: Conversation,
        seen: Endpoint,
        own: Endpoint,
        outcome: str,
        payload: bytes = PAYLOAD,
        length: int | None = None,
        kind: Kind = TOO_BIG,
    ) -> None:
        """Check that an error about a datagram from `seen` reaches the server at its address `own`, which the quote has, too."""
        expected = error(kind, ROUTER[own.address.version], own.address, packet_of(talk.response(own, payload), length))
        self.passes(1, self.about(talk, seen, payload, length, kind), port_of(server.dip.address), forwarded(expected), outcome)


class CookieAddressInTheQuoteNamesTheServer(QuicErrorTest):
    """The packets of a client that has migrated come from the cookie address: so does the quote, and the error is for it."""

    def runTest(self) -> None:
        vip = self.vips[0]
        for server in vip.servers:
            talk = self.new_conversation(vip)
            word = KEY.static6(server.sid)
            seen, own = cookie_address(vip, word), own_address(server, word)
            for kind in KINDS:
                for length in (None, 548, 8):
                    self.reaches(server, talk, seen, own, "ERROR_RETRIEVED", length=length, kind=kind)


class ForgedCookieAddressesDrop(QuicErrorTest):
    """An error to a cookie address that no key sealed, or of a server that has gone, is dropped."""

    def runTest(self) -> None:
        vip, other = self.vips[0], self.vips[1]
        server, talk = vip.servers[0], self.new_conversation(vip)
        seen = cookie_address(vip, KEY.static6(server.sid))
        forged = Endpoint(IPv6Address(int(seen.address) ^ 4), seen.port)
        self.drops(1, self.about(talk, forged), "COOKIE_FORGED")
        foreign = cookie_address(vip, KEY.static6(other.servers[0].sid))
        self.drops(1, self.about(talk, foreign), "SERVER_GONE")
        mismatch = error(TOO_BIG, ROUTER[6], seen.address, packet_of(talk.response(vip.at, PAYLOAD)))
        self.drops(1, mismatch, "ERROR_QUOTE")


class HandshakeTableFindsTheServer(QuicErrorTest):
    """Until the client has migrated, the handshake table names the server, and does not live longer because of errors."""

    def runTest(self) -> None:
        for vip in self.vips:
            vip.policy = CHEETAH_RR
            self.site.set_pool(vip, [vip.servers[2].sid])
            self.site.update_policy(vip)
            server, talk = vip.servers[2], self.new_conversation(vip)
            self.goes_to(server, talk.datagram(long(self.foreign_cid())), "ASSIGNED_RR")
            for payload in (PAYLOAD, long(self.foreign_cid())):
                for length in (None, 28, 8):
                    self.reaches(server, talk, vip.at, server.dip, "ERROR_RETRIEVED", payload, length)


class LaterErrorsGoByTheHash(QuicErrorTest):
    """After the handshake, a client at the VIP has no entry, and quoted packets carry only its own connection ids."""

    def runTest(self) -> None:
        for vip in self.vips:
            talk = self.new_conversation(vip)
            server = vip.servers[talk.hash & 3]
            for payload in (PAYLOAD, short(KEY.cid(vip.servers[0].sid, 1))):
                self.reaches(server, talk, vip.at, server.dip, "ERROR_HASHED", payload)
            self.site.delete(self.site.to_server(server))
            self.drops(1, self.about(talk, vip.at), "SERVER_GONE")


class RecentPacketsNameTheServer(QuicErrorTest):
    """An error answers a datagram that has just left: its server gets the error although the quote names no server."""

    def runTest(self) -> None:
        for vip in self.vips:
            talk = self.new_conversation(vip)
            server = vip.servers[(talk.hash & 3) ^ 1]
            self.comes_from(vip.at, talk.response(server.dip, PAYLOAD), "NO_INSIGHT")
            for length in (None, 8):
                self.reaches(server, talk, vip.at, server.dip, "ERROR_RETRIEVED", length=length)


class HandshakeWhoseServerIsGone(QuicErrorTest):
    """An error does not remove the entry of a handshake whose server is gone."""

    def runTest(self) -> None:
        vip = self.vips[0]
        vip.policy = CHEETAH_RR
        self.site.set_pool(vip, [vip.servers[2].sid])
        self.site.update_policy(vip)
        server, talk = vip.servers[2], self.new_conversation(vip)
        self.goes_to(server, talk.datagram(long(self.foreign_cid())), "ASSIGNED_RR")
        self.site.delete(self.site.to_server(server))
        self.drops(1, self.about(talk, vip.at), "SERVER_GONE")
        self.site.insert([self.site.to_server(server)])
        self.reaches(server, talk, vip.at, server.dip, "ERROR_RETRIEVED")


class DatagramsWithoutChecksum(QuicErrorTest):
    """A quoted datagram over IPv4 without a checksum stays without one."""

    def runTest(self) -> None:
        vip = self.vips[1]
        talk = self.new_conversation(vip)
        server = vip.servers[talk.hash & 3]
        quotes = [overwritten(packet_of(talk.response(source, PAYLOAD)), 26, 0, 0) for source in (vip.at, server.dip)]
        sent, expected = (
            error(TOO_BIG, ROUTER[4], to, quote) for to, quote in zip((vip.at.address, server.dip.address), quotes, strict=True)
        )
        self.passes(1, sent, port_of(server.dip.address), forwarded(expected), "ERROR_HASHED")


class ServersSendErrorsFromWhereTheyAreSeen(QuicErrorTest):
    """An error about a client's datagram leaves from the VIP, or from the cookie address to which the client sent."""

    def runTest(self) -> None:
        for vip in self.vips:
            server, talk = vip.servers[1], self.new_conversation(vip)
            pairs = [(vip.at, server.dip)]
            if vip.prefix is not None:
                word = KEY.static6(server.sid)
                pairs.append((cookie_address(vip, word), own_address(server, word)))
            for seen, own in pairs:
                datagram = short(KEY.cid(server.sid, 1), 1200)
                for length in (None, 8):
                    inner = Conversation(talk.client, own).datagram(datagram)
                    sent = error(KINDS[2], own.address, talk.client.address, packet_of(inner, length), port=3)
                    quote = packet_of(talk.datagram(datagram, seen), length)
                    expected = error(KINDS[2], seen.address, talk.client.address, quote)
                    self.passes(3, sent, 1, forwarded(expected), "NO_INSIGHT")


class TcpAndUdpAreApart(QuicErrorTest):
    """The quoted protocol selects the service: a datagram is not from a TCP service at the same address and port."""

    def runTest(self) -> None:
        for at in (VIP4, VIP6):
            vip = self.make_vip(1, at.address.version, at, base=64 + at.address.version, first_sid=1000 + at.address.version)
            talk = Conversation(self.new_flow(vip).client, vip.at)
            self.drops(1, self.about(talk, vip.at), "VIP_NO_SERVICE")

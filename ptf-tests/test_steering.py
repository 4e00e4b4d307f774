# SPDX-License-Identifier: Apache-2.0
"""Steering: the site of a packet to a service address, and further sites that get a copy."""

from frontage_ptf.cookie import plain_cid
from frontage_ptf.frame import Frame
from frontage_ptf.names import DROPS
from frontage_ptf.packets import Endpoint, Flow
from frontage_ptf.quic import QUIC4, QUIC6, long, short
from frontage_ptf.site import Vip
from frontage_ptf.switch import KEY, to_server
from frontage_ptf.tunnel import DISPATCHERS, OWN, SITE_PORT, Tunnel, TunnelTest, vtep

DECIDED = 77
DEPLOYED = 8
"""As what the service of that number is deployed."""


class LocalServiceIsAPlainVip(TunnelTest):
    """If the mapping names this site, or has no entry, a service address is a VIP like any other."""

    def runTest(self) -> None:
        self.reach(6)
        for vip in (self.make_service(QUIC4, 1, number=DECIDED), self.make_service(QUIC6, 2, number=DECIDED)):
            talk, frame = self.initial(vip)
            self.goes_to(self.hashed(vip, talk), frame, "ASSIGNED_HASH")
        self.deploy(DEPLOYED, DECIDED)
        self.initial_stays(vip)
        self.map(DEPLOYED, None)
        self.initial_stays(vip)

    def initial_stays(self, vip: Vip) -> None:
        talk, frame = self.initial(vip)
        server = self.hashed(vip, talk)
        self.goes_to(server, frame, "ASSIGNED_HASH")
        self.comes_back(vip, talk.response(server.dip), "NO_INSIGHT")


class FirstFlightGoesToMappedSite(TunnelTest):
    """Every kind of tunnel, around packets of both IP versions."""

    def runTest(self) -> None:
        vips = (self.make_service(QUIC4, 1, number=DECIDED), self.make_service(QUIC6, 2, number=DECIDED))
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, 3)
        for version, gre in ((4, False), (4, True), (6, False), (6, True)):
            self.reach(version, gre)
            for vip in vips:
                for size in (1200, 1252, 300):  # a datagram too small for an Initial may be 0-RTT
                    talk, frame = self.initial(vip, size)
                    self.leaves_in(self.to_site(3), frame, talk, frame, 1, "STEERED_SITE")
            self.site.delete(*(self.through(1, n, vtep(OWN, version), vtep(n, version), gre) for n in range(2, 6)))


class LongestPrefixIsTheRegion(TunnelTest):
    """The longest prefix of the client is its region; a region without an entry uses the default."""

    def runTest(self) -> None:
        self.reach(6)
        vip4, vip6 = self.make_service(QUIC4, 1, number=DECIDED), self.make_service(QUIC6, 2, number=DECIDED)
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, 2)
        for region, site in ((10, 3), (11, 4), (12, None)):
            self.map(DEPLOYED, site, region)
        for vip, prefixes in (
            (vip4, {"198.51.100.0/24": 10, "198.51.100.128/25": 11, "198.51.100.192/26": 12, "198.51.100.224/27": 13}),
            (
                vip6,
                {"2001:db8:1::/48": 10, "2001:db8:1:0:8000::/65": 11, "2001:db8:1:0:c000::/66": 12, "2001:db8:1:0:e000::/67": 13},
            ),
        ):
            version = vip.at.address.version
            self.site.insert(self.entry(f"region.client{version}", {"src": p}, "set_region", region=r) for p, r in prefixes.items())
            expected = {0b000: 3, 0b100: 4, 0b110: None, 0b111: 2}  # by the client's first bits after the first prefix
            seen: set[int] = set()
            while len(seen) < 4:
                talk, frame = self.initial(vip)
                bits = int(talk.client.address) >> (5 if version == 4 else 61) & 7
                kind = max(k for k in expected if bits >= k)
                if kind in seen:
                    continue
                seen.add(kind)
                site = expected[kind]
                if site is None:
                    self.goes_to(self.hashed(vip, talk), frame, "ASSIGNED_HASH")
                else:
                    self.leaves_in(self.to_site(site), frame, talk, frame, 1, "STEERED_SITE")


class ServicesShareADeployment(TunnelTest):
    """One entry of a deployment serves all of its services. A service that moves to another is one write. Changes
    take effect at once."""

    def runTest(self) -> None:
        self.reach(6, gre=True)
        vips = [self.make_service(Endpoint(QUIC6.address + n, 443), 2 + n, number=5 + n) for n in range(3)]
        self.deploy(1, 5, 6)
        self.deploy(2, 7)
        self.map(1, 2)
        self.map(2, 3)
        self.go_to(vips, 2, 2, 3)
        self.site.modify(self.mapped(1, 4))
        self.go_to(vips, 4, 4, 3)
        self.site.modify(self.deployed(6, 2))
        self.go_to(vips, 4, 3, 3)
        self.site.delete(self.deployed(7, 2))
        self.go_to(vips, 4, 3, None)

    def go_to(self, vips: list[Vip], *sites: int | None) -> None:
        for vip, site in zip(vips, sites, strict=True):
            talk, frame = self.initial(vip)
            if site is None:
                self.goes_to(self.hashed(vip, talk), frame, "ASSIGNED_HASH")
            else:
                self.leaves_in(self.to_site(site), frame, talk, frame, 1, "STEERED_SITE")


class OtherVipsAreNotSteered(TunnelTest):
    """A VIP that does not have a service entry is not steered, whatever it carries."""

    def runTest(self) -> None:
        self.reach(6)
        vip = self.make_quic(2, 7, QUIC6, 1, base=112, first_sid=700, prefix=None)
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, 3)
        self.set_sid_ranges()
        talk = self.new_conversation(vip)
        frame = talk.datagram(long(plain_cid(3000)))
        self.goes_to(self.hashed(vip, talk), frame, "ASSIGNED_HASH")


class ConnectionIdGoesToItsSite(TunnelTest):
    """A connection id of a server at another site leads there, without a copy; one of this site stays."""

    def runTest(self) -> None:
        self.reach(6)
        self.install_keys(KEY)
        vip = self.make_service(QUIC6, 2, number=DECIDED)
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, 4, copies=[2, 3])
        self.set_sid_ranges()
        for site in (2, 3):
            for sid in (site * 1000, site * 1000 + 999):
                for cid in (KEY.cid(sid, 5), plain_cid(sid)):
                    for packet in (long(cid), short(cid)):
                        talk = self.new_conversation(vip)
                        frame = talk.datagram(packet)
                        self.leaves_in(self.to_site(site), frame, talk, frame, 1, "STEERED_CID")
        server = vip.servers[1]
        for packet in (short(KEY.cid(server.sid, 5)), long(KEY.cid(server.sid, 5))):
            self.goes_to(server, self.new_conversation(vip).datagram(packet), "RETRIEVED_CID")
        # An id outside all sites' ranges is a client's own; and a short header that names no server.
        talk = self.new_conversation(vip)
        frame = talk.datagram(long(plain_cid(9999), size=700))
        self.leaves_in(self.to_site(4), frame, talk, frame, 1, "STEERED_SITE")
        self.drops(1, self.new_conversation(vip).datagram(short(self.foreign_cid(12))), "QUIC_NO_CONNECTION")


class FurtherSitesGetCopies(TunnelTest):
    """Redundancy: a possible Initial goes to the best site and to X - 1 others. Hop limits decrease by one in all
    of them."""

    def runTest(self) -> None:
        vips = (self.make_service(QUIC4, 1, number=DECIDED), self.make_service(QUIC6, 2, number=DECIDED))
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, 2)
        for version, gre in ((6, False), (4, False), (4, True), (6, True)):
            self.reach(version, gre)
            for n in range(2, 6):
                self.site.insert(self.copy_entries(n, version, gre))
            for others in ([], [3], [3, 4], [3, 4, 5]):
                self.site.modify(self.mapped(DEPLOYED, 2, session=self.session(others)))
                for vip in vips:
                    talk, frame = self.initial(vip)
                    self.goes_everywhere([2, *others], talk, frame)
            # Too small for an Initial, or about to expire: no copies.
            talk, frame = self.initial(vips[1], 1199)
            self.goes_everywhere([2], talk, frame)
            self.drops(1, Frame(frame).rewritten(hops=63), "TTL")
            for n in range(2, 6):
                self.site.delete(*self.copy_entries(n, version, gre))
                self.site.delete(self.through(1, n, vtep(OWN, version), vtep(n, version), gre))

    def goes_everywhere(self, sites: list[int], talk: Flow, frame: bytes) -> None:
        self.send(1, frame)
        self.sent += len(sites) - 1
        found = self.receive_all(len(sites))
        expected = [self.to_site(n).out(frame, talk) for n in sites]
        self.assertEqual(sorted(expected), sorted(found))


class CopyWithoutTunnelIsDropped(TunnelTest):
    """A copy to a site whose tunnel is not installed is dropped and counted. The other copies leave."""

    def runTest(self) -> None:
        vip = self.make_service(QUIC6, 2, number=DECIDED)
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, 2)
        self.reach(6)
        for n in (2, 4):
            self.site.insert(self.copy_entries(n, 6, False))
        self.site.modify(self.mapped(DEPLOYED, 2, session=self.session([3, 4])))
        talk, frame = self.initial(vip)
        self.send(1, frame)
        self.sent += 1
        expected = [self.to_site(n).out(frame, talk) for n in (2, 4)]
        self.assertEqual(sorted(expected), sorted(self.receive_all(2)))
        dropped = self.client.counter("FrontageEgress.egress_drops")
        self.assertEqual({"NO_TUNNEL": 1}, {DROPS[reason]: count for reason, count in dropped.items()})


class LocalSiteIsOneOfTheCopies(TunnelTest):
    """If this site is one of them, its own balancer gets the packet and the others get copies, also of packets
    dropped here."""

    def runTest(self) -> None:
        self.reach(6)
        for n in range(2, 6):
            self.site.insert(self.copy_entries(n, 6, False))
        vip = self.make_service(QUIC6, 2, number=DECIDED)
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, None, copies=[3, 5])
        talk, frame = self.initial(vip)
        server = self.hashed(vip, talk)
        for _ in range(2):  # the second finds the handshake and is copied again, because the first copy may be lost
            self.send(1, frame)
            self.sent += 2
            found = self.receive_all(3)
            for site in (3, 5):
                self.assertEqual(1, found[self.to_site(site).out(frame, talk)])
            self.assertEqual(1, found[3, to_server(frame, server)])
        for server in vip.servers:
            self.site.remove_server(vip, server)
        talk, frame = self.initial(vip)
        self.send(1, frame)
        self.sent += 2
        found = self.receive_all(2)
        self.assertEqual({self.to_site(site).out(frame, talk) for site in (3, 5)}, set(found))


class LongHeadersGoToADispatcher(TunnelTest):
    """If SNI selects the service, every long header without a server goes to a dispatcher, from clients and other
    sites, without copies."""

    def runTest(self) -> None:
        self.install_keys(KEY)
        self.set_sid_ranges()
        for version, vip in ((4, self.make_service(QUIC4, 1)), (6, self.make_service(QUIC6, 2))):
            dispatcher = DISPATCHERS[version]
            self.site.insert(self.through(2, slot, vtep(OWN, version), dispatcher) for slot in range(64))
            self.outer_version = version
            for size in (1200, 200):
                talk, frame = self.initial(vip, size)
                here = Tunnel(vtep(OWN, version), dispatcher, OWN)
                self.leaves_in(here, frame, talk, frame, 1, "STEERED_DISPATCHER")
                from_another = Tunnel(vtep(OWN, version), dispatcher, 3)
                self.leaves_in(from_another, frame, talk, self.from_site(3, 3).into(frame), SITE_PORT, "STEERED_DISPATCHER")
            server = vip.servers[0]
            talk = self.new_conversation(vip)
            frame = talk.datagram(long(KEY.cid(server.sid, 9)))
            self.goes_to(server, frame, "RETRIEVED_CID")
            outcome = "RETRIEVED_HANDSHAKE"  # the first one claimed an entry of the handshake table
            self.leaves_in(self.to_replica(vip, server, 3), frame, talk, self.from_site(3, 3).into(frame), SITE_PORT, outcome)
            self.site.delete(*(self.through(2, slot, vtep(OWN, version), dispatcher) for slot in range(64)))


class TunnelledPacketsAreNotSteeredAgain(TunnelTest):
    """A packet from a tunnel is never steered to a third site, whatever the mapping and its connection id say."""

    def runTest(self) -> None:
        self.reach(6)
        for n in range(2, 6):
            self.site.insert(self.copy_entries(n, 6, False))
        self.set_sid_ranges()
        vip = self.make_service(QUIC6, 2, number=DECIDED)
        self.deploy(DEPLOYED, DECIDED)
        self.map(DEPLOYED, 3, copies=[4])
        talk, frame = self.initial(vip)
        replica = self.to_replica(vip, self.hashed(vip, talk), 2)
        self.leaves_in(replica, frame, talk, self.from_site(2, 2).into(frame), SITE_PORT, "ASSIGNED_HASH")
        strayed = self.new_conversation(vip).datagram(short(plain_cid(3500)))
        self.drops(SITE_PORT, self.from_site(2, 2).into(strayed), "SERVER_GONE")

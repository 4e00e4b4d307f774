# SPDX-License-Identifier: Apache-2.0
"""Tunnels according to RFC 7348 and RFC 2890, and a test site with peers: other sites, a dispatcher, replicas."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, ip_address
from typing import Any

import finsy as fy
from finsy.proto import p4r

from frontage_ptf.frame import IP, Frame, ones_complement_sum
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, Flow
from frontage_ptf.quic import Conversation, QuicTest, long
from frontage_ptf.site import HASH, INGRESS, Server, Vip, port_of
from frontage_ptf.tree import Leaves

OWN = 1
SITE_ROLE = 3
SITE_PORT = 2
VXLAN_PORT = 4789
VXLAN, GRE = 1, 2
SITE, DISPATCHER, REPLICA = 1, 2, 3
ENDS = {4: ip_address("192.0.2.100"), 6: ip_address("2001:db8:f::100")}
DISPATCHERS = {4: ip_address("10.2.0.9"), 6: ip_address("fd12:3456:b::9")}
FIRST_VTEP = {4: ip_address("203.0.113.0"), 6: ip_address("2001:db8:2::")}
INNER_MAC = bytes.fromhex("020000000000")


def vtep(site: int, version: int) -> IP:
    """Return the tunnel endpoint of a site; other sites are behind port 2."""
    return ENDS[version] if site == OWN else FIRST_VTEP[version] + site


@dataclass(frozen=True)
class Tunnel:
    src: IP
    dst: IP
    id: int
    gre: bool = False

    def back(self) -> "Tunnel":
        return replace(self, src=self.dst, dst=self.src)

    def around(self, inner: bytes, macs: tuple[str, str], sport: int = 50000) -> bytes:
        """Return a frame with these MACs (source, destination) that carries `inner` from after its Ethernet header
        on."""
        if self.gre:
            body, protocol = b"\x20\x00" + inner[12:14] + self.id.to_bytes(4, "big") + inner[14:], 47
        else:
            head = b"\x08\0\0\0" + self.id.to_bytes(3, "big") + b"\0" + INNER_MAC + INNER_MAC
            body, protocol = head + inner[12:], 17
            body = b"".join(n.to_bytes(2, "big") for n in (sport, VXLAN_PORT, 8 + len(body), 0)) + body
        return ethernet(macs, self.src) + ip_header(self.src, self.dst, protocol, len(body)) + body

    def into(self, inner: bytes, port: int = SITE_PORT) -> bytes:
        """Return the tunnelled frame from the neighbor of `port`."""
        return self.around(inner, (NEIGHBOR_MAC[port], PORT_MAC[port]))

    def out(self, inner: bytes, flow: Flow, hops: int = 1) -> tuple[int, bytes]:
        """Return the port and the frame in which the switch sends `inner`, a packet of `flow`."""
        port = port_of(self.dst)
        sport = 0xC000 | flow.hash & 0x3FFF
        return port, self.around(Frame(inner).rewritten(hops=hops), (PORT_MAC[port], NEIGHBOR_MAC[port]), sport)


def prefixes(low: int, high: int) -> list[str]:
    """Return the 16-bit prefixes that make up a range."""
    found = []
    while low <= high:
        free = min((low & -low).bit_length() - 1 if low else 16, (high - low + 1).bit_length() - 1)
        found.append(f"{low}/{16 - free}")
        low += 1 << free
    return found


def ethernet(macs: tuple[str, str], address: IP) -> bytes:
    src, dst = (bytes.fromhex(mac.replace(":", "")) for mac in macs)
    return dst + src + (b"\x08\x00" if address.version == 4 else b"\x86\xdd")


def ip_header(src: IP, dst: IP, protocol: int, length: int) -> bytes:
    """Return an IP header for `length` bytes, not to be fragmented."""
    if isinstance(src, IPv4Address):
        head = (
            b"\x45\0" + (20 + length).to_bytes(2, "big") + b"\0\0\x40\0\x40" + bytes([protocol]) + b"\0\0" + src.packed + dst.packed
        )
        return head[:10] + (0xFFFF ^ ones_complement_sum(head)).to_bytes(2, "big") + head[12:]
    return b"\x60\0\0\0" + length.to_bytes(2, "big") + bytes([protocol, 64]) + src.packed + dst.packed


class TunnelTest(QuicTest):
    """Site 1, with sites 2 to 5 behind port 2, a dispatcher on port 4, and replicas on port 3. Without keys, so ids
    are in plaintext."""

    control = "tunnel"

    def _begin(self) -> None:
        self.shares = {}
        self.leaves = Leaves(keeps_ties=self.target == "tna")
        self.used_indices = set()
        self._sessions: dict[tuple[int, ...], int] = {}
        ports = {"ingress_port": SITE_PORT}
        self.site.modify(self.entry("ports.port", ports, "set_port", role=SITE_ROLE, mac=PORT_MAC[SITE_PORT]))
        for version in (4, 6):
            own = vtep(OWN, version)
            self.site.insert(
                [self._end(own, "local_endpoint"), self.entry(f"vip.address{version}", {"dst": int(own)}, "no_service")]
            )
            for number in range(2, 6):
                self.site.insert(self.site_entries(number, version))
            self.site.insert([self._end(DISPATCHERS[version], "remote_endpoint"), self.peer(DISPATCHERS[version], 2, 0, 0)])
        for number in range(2, 6):
            self.site.insert([self.origin(number, OWN, "deliver_response"), self.origin(number, number, "accept_first_flight")])
            self.site.insert([self.origin(0, number, "forward_response", site=number)])
        self.site.insert([self.origin(0, OWN, "deliver_response")])
        self.outer_version = 6
        self.gre = False

    def entry(self, table: str, match: dict[str, Any] | None, action: str, **params: Any) -> fy.P4TableEntry:
        return self.site.entry(INGRESS + table, match, action, **params)

    def _end(self, address: IP, action: str) -> fy.P4TableEntry:
        return self.entry(f"tunnel.endpoint{address.version}", {"dst": int(address)}, action)

    def peer(self, address: IP, role: int, site: int, sources: int) -> fy.P4TableEntry:
        match = {"src": int(address), "role": role}
        return self.entry(f"tunnel.peer{address.version}", match, "set_peer", site=site, source_set=sources)

    def origin(self, peer_site: int, tunnel_id: int, action: str, **params: int) -> fy.P4TableEntry:
        return self.entry("tunnel.origin", {"peer_site": peer_site, "tunnel_id": tunnel_id}, action, **params)

    def site_entries(self, number: int, version: int) -> list[fy.P4TableEntry]:
        return [self._end(vtep(number, version), "remote_endpoint"), self.peer(vtep(number, version), SITE_ROLE, number, 0)]

    def through(self, kind: int, number: int, src: IP, dst: IP, gre: bool = False) -> fy.P4TableEntry:
        match = {"kind": kind, "id": number}
        params = {"encapsulation": GRE if gre else VXLAN, "src": int(src), "dst": int(dst)}
        return self.entry("encapsulation.remote", match, f"set_tunnel{src.version}", **params)

    def reach(self, version: int, gre: bool = False) -> None:
        """Install tunnels to all sites over this IP version."""
        self.outer_version, self.gre = version, gre
        self.site.insert(self.through(SITE, n, vtep(OWN, version), vtep(n, version), gre) for n in range(2, 6))

    def to_site(self, number: int) -> Tunnel:
        return Tunnel(vtep(OWN, self.outer_version), vtep(number, self.outer_version), OWN, self.gre)

    def from_site(self, number: int, tunnel_id: int) -> Tunnel:
        return Tunnel(vtep(number, self.outer_version), vtep(OWN, self.outer_version), tunnel_id, self.gre)

    def make_service(self, at: Endpoint, id: int, count: int = 2, number: int | None = None) -> Vip:
        """Install a service address whose replicas have tunnels, with policy hash. `number` is the service's if the
        address selects it; `deploy` then sets its deployment."""
        vip = self.make_quic(count, id, at, HASH, base=16 * id, first_sid=100 * id, prefix=None)
        if number is None:
            self.site.insert([self.entry("steering.service", {"vip_id": id}, "use_dispatcher", local_site=OWN)])
        else:
            self.site.insert([self.entry("steering.service", {"vip_id": id}, "set_service", local_site=OWN, service=number)])
        version = at.address.version
        self.site.insert([self.source(0, at)])
        for server in vip.servers:
            dip = server.dip.address
            self.site.insert(
                [self._end(dip, "remote_endpoint"), self.peer(dip, 2, 0, server.sid + 1), self.source(server.sid + 1, at)]
            )
            self.site.insert([self.through(REPLICA, server.sid, ENDS[version], dip)])
        return vip

    def deployed(self, service: int, deployment: int) -> fy.P4TableEntry:
        return self.entry("steering.deployment", {"service": service}, "set_deployment", deployment=deployment)

    def deploy(self, deployment: int, *services: int) -> None:
        """Let these services share the deployment."""
        self.site.insert([self.deployed(service, deployment) for service in services])

    def mapped(self, deployment: int, site: int | None, region: int = 0, session: int = 0) -> fy.P4TableEntry:
        """Return the mapping entry to this site (None) or another one, with copies by a clone session. Region 0 is
        the default."""
        match = {"deployment": deployment} | ({"region": region} if region else {})
        table = "mapping" if region else "default_mapping"
        if site is None:
            return self.entry(f"steering.{table}", match, "keep_local", clone_session=session)
        return self.entry(f"steering.{table}", match, "to_site", site=site, clone_session=session)

    def map(self, deployment: int, site: int | None, region: int = 0, copies: Sequence[int] = ()) -> None:
        session = self.session(copies)
        self.site.insert([self.mapped(deployment, site, region, session)])

    def session(self, sites: Sequence[int]) -> int:
        """Return the clone session of these sites, which the first call installs."""
        if not sites:
            return 0
        key = tuple(sites)
        if key not in self._sessions:
            self._sessions[key] = 100 + len(self._sessions)
            update = p4r.Update(type=p4r.Update.INSERT)
            session = update.entity.packet_replication_engine_entry.clone_session_entry
            session.session_id = self._sessions[key]
            for site in sites:
                session.replicas.add(egress_port=SITE_PORT, instance=site)
            self.client.write_raw([update])
            # BMv2 keeps it when it gets a new program, and would add the next test's replicas to it.
            self.addCleanup(self.client.write, -fy.P4CloneSessionEntry(session.session_id))
        return self._sessions[key]

    def copy_entries(self, number: int, version: int, gre: bool) -> list[fy.P4TableEntry]:
        """Return the egress entries for a copy to a site."""
        match = {"kind": SITE, "id": number}
        params = {"encapsulation": GRE if gre else VXLAN, "src": int(vtep(OWN, version)), "dst": int(vtep(number, version))}
        hop = {"src_mac": PORT_MAC[SITE_PORT], "dst_mac": NEIGHBOR_MAC[SITE_PORT]}
        return [
            self.site.entry("FrontageEgress.copies.outer.remote", match, f"set_tunnel{version}", **params),
            self.site.entry("FrontageEgress.copies.next_hop", {"site": number}, "rewrite_macs", **hop),
        ]

    def set_sid_ranges(self) -> None:
        """Give SIDs 0 to 1023 to this site, 2000 to 2999 to site 2, and 3000 to 3999 to site 3."""
        self.site.insert([self.entry("steering.sid_site", {"sid": "0/6"}, "set_local_site")])
        for site in (2, 3):
            for prefix in prefixes(1000 * site, 1000 * site + 999):
                self.site.insert([self.entry("steering.sid_site", {"sid": prefix}, "set_remote_site", site=site)])

    def source(self, sources: int, at: Endpoint) -> fy.P4TableEntry:
        match = {"source_set": sources, "src": int(at.address), "src_port": at.port}
        return self.entry(f"tunnel.source{at.address.version}", match, "NoAction")

    def hashed(self, vip: Vip, flow: Flow) -> Server:
        return vip.servers[flow.hash % vip.maglev_size % len(vip.servers)]

    def to_replica(self, vip: Vip, server: Server, tunnel_id: int) -> Tunnel:
        return Tunnel(ENDS[vip.at.address.version], server.dip.address, tunnel_id)

    def initial(self, vip: Vip, size: int = 1200) -> tuple[Conversation, bytes]:
        """Some client's first packet, with an id of its own choice."""
        talk = self.new_conversation(vip)
        return talk, talk.datagram(long(self.foreign_cid(), size=size))

    def reply(self, talk: Conversation, port: int = 1) -> bytes:
        """Return a replica's response as its client receives it, sent through a tunnel from `port`."""
        return talk.response(talk.vip, port=port)

    def leaves_in(self, tunnel: Tunnel, inner: bytes, flow: Flow, sent: bytes, port: int, outcome: str | None = None) -> None:
        """Check that `sent` comes out as `inner` in `tunnel`."""
        to, frame = tunnel.out(inner, flow)
        self.passes(port, sent, to, frame, outcome)

# SPDX-License-Identifier: Apache-2.0
"""Tunnels of remote servers, built by Scapy, and a test site whose servers are behind tunnel endpoints."""

from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

import finsy as fy
from scapy.all import GRE as Gre
from scapy.all import IP as Ip4
from scapy.all import UDP as Udp
from scapy.all import Ether, IPv6, Packet, Raw
from scapy.contrib.geneve import GENEVE as Geneve
from scapy.layers.vxlan import VXLAN as Vxlan

from frontage_ptf.frame import IP, Frame
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Flow
from frontage_ptf.quic import QuicTest
from frontage_ptf.site import INGRESS, LB, Server, Vip, port_of
from frontage_ptf.tunnel import ENDS, INNER_MAC, ethernet

VXLAN, GRE, GENEVE, GRE_KEYLESS, IP_IN_IP = 1, 2, 3, 4, 5
KINDS = {VXLAN: 30, GRE: 8, GENEVE: 30, GRE_KEYLESS: 4, IP_IN_IP: 0}
"""The kinds of tunnels, with the bytes that each adds between the IP headers."""
IDS = {VXLAN: 0xABCDEF, GRE: 0x89ABCDEF, GENEVE: 0xFEDCBA, GRE_KEYLESS: 0, IP_IN_IP: 0}
SERVER_REMOTE = 4
SWITCH_INNER_MAC = bytes.fromhex("020000000001")
UNDERLAY_PORT = 4
"""The port behind which all endpoints are. The servers' own addresses are behind port 3."""
FIRST_END = {4: "10.2.0.16", 6: "fd12:3456:b::10"}


@dataclass(frozen=True)
class ServerTunnel:
    """A tunnel from `src` to `dst`."""

    kind: int
    src: IP
    dst: IP
    id: int

    def back(self) -> "ServerTunnel":
        return replace(self, src=self.dst, dst=self.src)

    @property
    def overhead(self) -> int:
        return KINDS[self.kind] + (20 if self.dst.version == 4 else 40)

    def around(self, inner: bytes, macs: tuple[str, str], flow: Flow | None = None) -> bytes:
        """Return a frame with these MACs (source, destination) that carries `inner` from after its Ethernet header on.

        The switch's own tunnels spread by `flow`.
        """
        body = Raw(inner[14:])
        source = INNER_MAC if flow is None else SWITCH_INNER_MAC
        frame = Ether(src=source, dst=INNER_MAC, type=int.from_bytes(inner[12:14], "big")) / body
        port = 50000 if flow is None else 0xC000 | flow.hash & 0x3FFF
        content: Packet
        if self.kind == VXLAN:
            content = Udp(sport=port, dport=4789, chksum=0) / Vxlan(vni=self.id, flags=8) / frame
        elif self.kind == GENEVE:
            content = Udp(sport=port, dport=6081, chksum=0) / Geneve(vni=self.id, proto=0x6558) / frame
        elif self.kind == GRE:
            content = Gre(key_present=1, key=self.id, proto=frame.type) / body
        elif self.kind == GRE_KEYLESS:
            content = Gre(proto=frame.type) / body
        else:
            content = body
        protocol = {VXLAN: 17, GENEVE: 17, GRE: 47, GRE_KEYLESS: 47}.get(self.kind, 4 if frame.type == 0x0800 else 41)
        if self.dst.version == 4:
            outer = Ip4(src=str(self.src), dst=str(self.dst), proto=protocol, ttl=64, id=0, flags="DF")
        else:
            label = 0 if flow is None else flow.hash & 0xFFFFF
            outer = IPv6(src=str(self.src), dst=str(self.dst), nh=protocol, hlim=64, fl=label)
        return ethernet(macs, self.dst) + bytes(outer / content)

    def into(self, inner: bytes, port: int = UNDERLAY_PORT) -> bytes:
        """Return the tunnelled frame from the neighbor of `port`."""
        return self.around(inner, (NEIGHBOR_MAC[port], PORT_MAC[port]))

    def out(self, inner: bytes, flow: Flow) -> bytes:
        """Return the frame in which the switch sends `inner`, a packet of `flow`."""
        return self.around(inner, (PORT_MAC[UNDERLAY_PORT], NEIGHBOR_MAC[UNDERLAY_PORT]), flow)


class RemoteTest(QuicTest):
    """VIPs whose servers are behind tunnels of one kind."""

    control = "remote_servers"

    def _begin(self) -> None:
        super()._begin()
        for version, own in ENDS.items():
            self.site.insert(
                [self._end(own, "local_endpoint"), self.table(f"vip.address{version}", {"dst": int(own)}, "no_service")]
            )

    def table(self, table: str, match: dict[str, Any], action: str, **params: Any) -> fy.P4TableEntry:
        return self.site.entry(INGRESS + table, match, action, **params)

    def _end(self, address: IP, action: str) -> fy.P4TableEntry:
        return self.table(f"tunnel.endpoint{address.version}", {"dst": int(address)}, action)

    def tunnel_to(self, server: Server, kind: int, outer: int) -> ServerTunnel:
        """Return the tunnel to the server, whose endpoint has an address of its own."""
        return ServerTunnel(kind, ENDS[outer], ip_address(FIRST_END[outer]) + server.sid % 100, IDS[kind])

    def put_behind(self, server: Server, tunnel: ServerTunnel, mtu: int = 1500, *, routed: bool = False) -> int:
        """Put an installed server behind a tunnel, on a network with this MTU. Return the largest segment that fits."""
        version, limit = server.dip.address.version, mtu - tunnel.overhead
        max_mss = limit - (40 if version == 4 else 60)
        dip = {"dip": int(server.dip.address), "port": server.dip.port}
        to = self.site.entry(
            f"{LB}server.server{version}", {"sid": server.sid}, f"to_remote_server{version}", **dip, max_mss=max_mss
        )
        self.site.modify(to)
        remote = self.table(
            "encapsulation.remote",
            {"kind": SERVER_REMOTE, "id": server.sid},
            f"set_server_tunnel{tunnel.dst.version}",
            encapsulation=tunnel.kind,
            id=tunnel.id,
            length_limit=limit,
            src=int(tunnel.src),
            dst=int(tunnel.dst),
        )
        source_set = server.sid + 1
        source = {"max_mss": max_mss} | ({} if routed else {"source_set": source_set})
        entries = [
            remote,
            self.table("remote_servers.source", {"sid": server.sid}, "return_routed" if routed else "return_by_tunnel", **source),
        ]
        if not routed:
            entries += self.peer_entries(tunnel, source_set)
        self.site.insert(entries)
        return max_mss

    def peer_entries(self, tunnel: ServerTunnel, source_set: int) -> list[fy.P4TableEntry]:
        """Return the entries of the far end of `tunnel`."""
        match = {"source_set": source_set, "encapsulation": tunnel.kind, "tunnel_id": tunnel.id}
        return [
            self._end(tunnel.dst, "remote_endpoint"),
            self.table(
                f"tunnel.peer{tunnel.dst.version}",
                {"src": int(tunnel.dst), "role": 2},
                "set_server_peer",
                source_set=source_set,
            ),
            self.table("tunnel.server_tunnel.tunnel", match, "NoAction"),
        ]

    def goes_into(self, tunnel: ServerTunnel, server: Server, frame: bytes, flow: Flow, outcome: str | None = None) -> None:
        """Check that the client's packet reaches the server in the tunnel."""
        inner = Frame(frame).rewritten(dst=(server.dip.address, server.dip.port))
        self.passes(1, frame, UNDERLAY_PORT, tunnel.out(inner, flow), outcome)

    def comes_out_of(
        self,
        tunnel: ServerTunnel,
        vip: Vip,
        frame: bytes,
        outcome: str | None = None,
        tsval: int | None = None,
        ck: int | None = None,
    ) -> None:
        """Check that the server's packet, sent through the tunnel, reaches its client from the VIP."""
        to = port_of(Frame(frame).dst)
        macs = (PORT_MAC[to], NEIGHBOR_MAC[to])
        expected = Frame(frame).rewritten(macs, src=(vip.at.address, vip.at.port), tsval=tsval, ck=ck)
        self.passes(UNDERLAY_PORT, tunnel.back().into(frame), to, expected, outcome)

    def segments(self) -> dict[int, int]:
        """Return the counts of SYNs and SYN-ACKs of remote servers: kept, clamped, unknown."""
        return self.client.counter("FrontageIngress.mss.segments.segments")

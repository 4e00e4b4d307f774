# SPDX-License-Identifier: Apache-2.0
"""Test case for QDSR: load balancers, which are servers on port 3, and real servers on ports 4 and 5
(docs/real-servers.md)."""

from ipaddress import ip_address

import finsy as fy

from frontage_ptf.cookie import Key
from frontage_ptf.frame import IP, Frame
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, Flow
from frontage_ptf.quic import QuicTest, own_address
from frontage_ptf.site import INGRESS, Server
from frontage_ptf.switch import KEY

REAL_SERVER = 4  # the role
PORTS = (4, 5)
OWN: dict[tuple[int, int], IP] = {  # by port and IP version
    (4, 4): ip_address("10.2.0.77"),
    (4, 6): ip_address("fd12:3456:b::77"),
    (5, 4): ip_address("10.3.0.77"),
    (5, 6): ip_address("fd12:3456:c::77"),
}
OUTSIDE = {4: ip_address("198.51.100.7"), 6: ip_address("2001:db8:1::7")}
AUXILIARY = 4433  # of a real server: the connection with its load balancer


class RealServerTest(QuicTest):
    """Each real server has an address of each IP version, and may not send for any server yet."""

    control = "real_servers"

    def _begin(self) -> None:
        super()._begin()
        table = INGRESS + "ports.port"
        four, five = (self.site.entry(table, {"ingress_port": n}, "set_port", role=REAL_SERVER, mac=PORT_MAC[n]) for n in PORTS)
        self.site.modify(four)
        hop = {"port": 5, "src_mac": PORT_MAC[5], "dst_mac": NEIGHBOR_MAC[5]}
        self.site.insert([five, self.site.entry(INGRESS + "forwarding.next_hop", {"next_hop": 5}, "forward", **hop)])
        self.site.insert([self.site.route("10.3.0.0/16", 5), self.site.route("fd12:3456:c::/48", 5)])
        for (port, version), address in OWN.items():
            self.site.insert(
                [self.own_source(address, port), self.table(f"destination{version}", {"dst": int(address)}, "external_source")]
            )

    def table(self, name: str, match: dict[str, int], action: str, **params: int) -> fy.P4TableEntry:
        return self.site.entry(f"{INGRESS}real_servers.{name}", match, action, **params)

    def own_source(self, address: IP, port: int) -> fy.P4TableEntry:
        return self.table(f"source{address.version}", {"src": int(address)}, "set_real_server_port", port=port)

    def sender(self, port: int, server: Server, second_hand: bool = True) -> fy.P4TableEntry:
        match = {"ingress_port": port, "sid": server.sid}
        return self.table("sender", match, "allow_sender", from_real_server=int(second_hand))

    def may_send(self, port: int, *servers: Server) -> None:
        """Allow the real server on this port to send as these servers."""
        self.site.insert([self.sender(port, server) for server in servers])

    def random_dynamic(self, server: Server, x: int = 0, rpt: int | None = None, key: Key = KEY) -> Endpoint:
        """Return an address of the server for a response with this RPT (random, if None) and random loads."""
        rpt, n_af, n_ff = self.rng.getrandbits(8) if rpt is None else rpt, self.rng.getrandbits(8), self.rng.getrandbits(8)
        return own_address(server, key.dynamic6(server.sid, rpt, n_af, n_ff, x))

    def routed(self, frame: bytes, to: int) -> bytes:
        return Frame(frame).rewritten((PORT_MAC[to], NEIGHBOR_MAC[to]))

    def forwards(self, port: int, frame: bytes, to: int) -> None:
        """Check that the packet is routed as transit."""
        self.passes(port, frame, to, self.routed(frame, to))

    def sender_count(self, port: int, server: Server) -> tuple[int, int]:
        """Return packets and bytes that the port sent as this server."""
        entry = fy.P4DirectCounterEntry(f"{INGRESS}real_servers.sender", table_entry=self.sender(port, server))
        (count,) = self.client.read(entry)
        return int(count.packet_count), int(count.byte_count)


def between(source: IP, sport: int, to: IP, dport: int) -> Flow:
    """Return a flow for segments and datagrams from one address to another."""
    return Flow(Endpoint(source, sport), Endpoint(to, dport))


__all__ = ["AUXILIARY", "OUTSIDE", "OWN", "PORTS", "RealServerTest", "between"]

# SPDX-License-Identifier: Apache-2.0
"""Test site: the entries that a controller would install, for ports, routes, VIPs with their servers and policies,
and keys."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import finsy as fy

from frontage_ptf.client import Client
from frontage_ptf.cookie import Key, decode
from frontage_ptf.frame import IP, TCP, UDP
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint

CLIENT, SERVER = 1, 2
ROLES = {1: CLIENT, 2: CLIENT, 3: SERVER, 4: SERVER}  # port 5 has no role yet
HASH, CHEETAH_RR, CHEETAH_LL, CCLB4 = 1, 2, 3, 4
IID = (1 << 64) - 1  # mask of the interface id of an IPv6 address
SET, ADD, SUB, SEED, CLEAR, READ = 1, 2, 3, 4, 5, 6

# Networks by prefix, with their ports. The switch is the gateway of each network.
NETWORKS = {
    "198.51.100.0/24": 1,
    "203.0.113.0/24": 2,
    "10.1.0.0/16": 3,
    "10.2.0.0/16": 4,
    "2001:db8:1::/48": 1,
    "2001:db8:2::/48": 2,
    "fd12:3456:a::/48": 3,
    "fd12:3456:b::/48": 4,
}
COOKIE_PREFIXES = ["2001:db8:c00c::/48"]  # each QUIC service has a /64 of it
GATEWAYS = [ip_network(prefix)[1] for prefix in NETWORKS]
UNIT = 16  # one flow of a server of weight 1

INGRESS = "FrontageIngress."
READING = INGRESS + "reading."
LB = INGRESS + "cclb4."


@dataclass
class Server:
    sid: int
    dip: Endpoint
    slot: int = 0
    active: bool = True
    score_class: int = 0


@dataclass
class Vip:
    id: int
    at: Endpoint
    servers: list[Server] = field(default_factory=list)
    policy: int = CCLB4
    flow_unit: int = UNIT
    tree_base: int = 0
    tree_depth: int = 0
    maglev_size: int = 0
    pool_size: int = 0
    protocol: int = TCP
    prefix: int | None = None
    """The upper 64 bits of the service's cookie addresses."""

    def server(self, sid: int) -> Server:
        return next(server for server in self.servers if server.sid == sid)


def port_of(address: IP) -> int:
    return next(port for prefix, port in NETWORKS.items() if address in ip_network(prefix))


def tree_depth_for(count: int) -> int:
    """Return the depth of a tree with at least `count` leaves."""
    return max(0, (count - 1).bit_length())


COPIES = {
    "ports.port": "tunnel.port",
    "tunnel.endpoint4": "nested.endpoint4",
    "tunnel.endpoint6": "nested.endpoint6",
    "encapsulation.remote": "remote_route.remote",
}
"""Tables whose contents a program for several pipes needs in another pipe, too."""


class Site:
    def __init__(self, client: Client):
        self.masking = f"{client.program.control('masking')}"
        self.client = client
        self._keyed: set[int] = set()
        self._quic_keyed: set[int] = set()
        self._static_cookies: set[tuple[int, int]] = set()
        self._addresses: set[IP] = set()

    def entry(self, table: str, match: dict[str, Any] | None, action: str, **params: Any) -> fy.P4TableEntry:
        return self.client.entry(table, match, action, **params)

    def insert(self, entries: Iterable[fy.P4TableEntry]) -> None:
        self.client.write(*(+entry for entry in self._with_copies(entries)))

    def modify(self, *entries: fy.P4TableEntry) -> None:
        self.client.write(*(~entry for entry in self._with_copies(entries)))

    def delete(self, *entries: fy.P4TableEntry) -> None:
        self.client.write(*(-entry for entry in self._with_copies(entries)))

    def _with_copies(self, entries: Iterable[fy.P4TableEntry]) -> Iterator[fy.P4TableEntry]:
        """Yield the entries, and those that a program for several pipes needs for the same purpose in another pipe."""
        for entry in entries:
            yield entry
            copy = COPIES.get(entry.table_id.removeprefix(INGRESS))
            if copy is None or self.client.schema.tables.get(INGRESS + copy) is None:
                continue
            call = entry.action
            assert isinstance(call, fy.P4TableAction)
            action, parameters = call.name.rpartition(".")[2], call.args
            if action == "set_port":
                action, parameters = "set_role", {"role": parameters["role"]}
            elif "dst" in parameters:
                kind = IPv4Address if action == "set_tunnel4" else IPv6Address
                action, parameters = "set_next_hop", {"next_hop": port_of(kind(parameters["dst"]))}
            yield self.entry(INGRESS + copy, entry.match, action, **parameters)

    def install_networks(self) -> None:
        entries = []
        for port, role in ROLES.items():
            entries.append(self.entry(INGRESS + "ports.port", {"ingress_port": port}, "set_port", role=role, mac=PORT_MAC[port]))
            hop = {"port": port, "src_mac": PORT_MAC[port], "dst_mac": NEIGHBOR_MAC[port]}
            entries.append(self.entry(INGRESS + "forwarding.next_hop", {"next_hop": port}, "forward", **hop))
        for prefix, port in NETWORKS.items():
            entries.append(self.route(prefix, port))
            entries += self.own_address(ip_network(prefix)[1], PORT_MAC[port])
        self.insert(entries)

    def route(self, prefix: str, next_hop: int) -> fy.P4TableEntry:
        version = ip_network(prefix).version
        return self.entry(f"{INGRESS}forwarding.ipv{version}_lpm", {"dst": prefix}, "set_next_hop", next_hop=next_hop)

    def group_route(self, prefix: str, group: int) -> fy.P4TableEntry:
        version = ip_network(prefix).version
        return self.entry(f"{INGRESS}forwarding.ipv{version}_lpm", {"dst": prefix}, "set_group", group=group)

    def group(self, number: int, *next_hops: int) -> fy.P4TableEntry:
        """Return the entry of a group of next hops."""
        control = f"{INGRESS}forwarding.next_hop_group."
        members = [(1, fy.P4TableAction(f"{control}set_next_hop", next_hop=next_hop)) for next_hop in next_hops]
        return fy.P4TableEntry(
            f"{control}members", match=fy.P4TableMatch({"group": number}), action=fy.P4IndirectAction(action_set=members)
        )

    def own_address(self, address: IP, mac: str) -> list[fy.P4TableEntry]:
        neighbor, echo = ("arp", "echo4") if isinstance(address, IPv4Address) else ("ndp", "echo6")
        return [
            self.entry(f"{INGRESS}neighbor.{neighbor}", {"target": int(address)}, f"{neighbor}_reply", mac=mac),
            self.entry(f"{INGRESS}neighbor.{echo}", {"dst": int(address)}, "echo_reply"),
        ]

    def policy(self, vip: Vip) -> fy.P4TableEntry:
        return self.entry(
            INGRESS + "vip.policy",
            {"vip_id": vip.id},
            "set_policy",
            policy=vip.policy,
            flow_unit=vip.flow_unit,
            tree_base=vip.tree_base,
            tree_depth=vip.tree_depth,
            pool_size=vip.pool_size,
            maglev_mask=max(0, vip.maglev_size - 1),
        )

    def add_vip(self, vip: Vip) -> None:
        """Install the service, its address and its servers; Maglev's slots go to the servers in turn."""
        version = vip.at.address.version
        address = int(vip.at.address)
        match = {"dst": address, "protocol": vip.protocol, "dst_port": vip.at.port}
        self.insert([self.entry(f"{INGRESS}vip.vip{version}", match, "set_vip", vip_id=vip.id)])
        if vip.prefix is not None:
            self.add_cookie_prefix(vip)
        if vip.at.address not in self._addresses:
            self._addresses.add(vip.at.address)
            self.insert([self.entry(f"{INGRESS}vip.address{version}", {"dst": address}, "no_service")])
            self.insert(self.own_address(vip.at.address, PORT_MAC[1]))
        for server in vip.servers:
            self.add_server(vip, server)
        if vip.servers:
            vip.maglev_size = 1 << tree_depth_for(len(vip.servers))
            self.insert(self.maglev(vip, [vip.servers[i % len(vip.servers)].sid for i in range(vip.maglev_size)]))
        self.insert([self.policy(vip)])

    def member(self, vip: Vip, server: Server) -> fy.P4TableEntry:
        match = {"vip_id": vip.id, "sid": server.sid}
        return self.entry(LB + "choice.member", match, "set_member", slot=server.slot, active=int(server.active))

    def from_server(self, vip: Vip, server: Server) -> fy.P4TableEntry:
        version, dip = vip.at.address.version, int(server.dip.address)
        params = {
            "sid": server.sid,
            "vip_id": vip.id,
            "slot": server.slot,
            "active": int(server.active),
            "score_class": server.score_class,
            "vip": int(vip.at.address),
            "vip_port": vip.at.port,
        }
        if vip.protocol == UDP and version == 6:
            params |= {"dip_id": dip & IID, "prefix": vip.prefix or 0}
            match = {"prefix": dip >> 64, "src_port": server.dip.port}
            return self.entry(f"{INGRESS}vip.quic_dip6", match, "from_quic_server6", **params)
        match = {"src": dip, "src_port": server.dip.port}
        if version == 4:
            match["protocol"] = vip.protocol
        return self.entry(f"{INGRESS}vip.dip{version}", match, f"from_server{version}", **params)

    def fragment_source(self, vip: Vip, server: Server) -> fy.P4TableEntry:
        """Return the entry that drops fragments of the server. A QUIC server over IPv6 has a /64."""
        version, dip = vip.at.address.version, server.dip.address
        source: Any = int(dip)
        if version == 6:
            source = str(ip_network((dip, 64 if vip.protocol == UDP else 128), strict=False))
        return self.entry(f"{INGRESS}fragments.source{version}", {"src": source}, "drop_fragment")

    def add_cookie_prefix(self, vip: Vip) -> None:
        """Install the /64 of the service's cookie addresses."""
        match = {"prefix": vip.prefix}
        self.insert([self.entry(INGRESS + "vip.cookie_prefix", match, "no_service")])
        match["dst_port"] = vip.at.port
        self.insert([self.entry(INGRESS + "vip.cookie_address", match, "set_cookie_address", vip_id=vip.id)])

    def to_server(self, server: Server) -> fy.P4TableEntry:
        version = server.dip.address.version
        params = {"dip": int(server.dip.address), "port": server.dip.port}
        return self.entry(f"{LB}server.server{version}", {"sid": server.sid}, f"to_server{version}", **params)

    def add_server(self, vip: Vip, server: Server) -> None:
        self.insert([self.member(vip, server), self.from_server(vip, server), self.to_server(server)])

    def remove_server(self, vip: Vip, server: Server) -> None:
        self.delete(self.member(vip, server), self.from_server(vip, server), self.to_server(server))

    def update_server(self, vip: Vip, server: Server) -> None:
        """Update the server's entries after a change of `active` or `score_class`."""
        self.modify(self.member(vip, server), self.from_server(vip, server))

    def update_policy(self, vip: Vip) -> None:
        self.modify(self.policy(vip))

    def maglev(self, vip: Vip, sids: Sequence[int]) -> list[fy.P4TableEntry]:
        table = READING + "maglev.maglev"
        return [self.entry(table, {"vip_id": vip.id, "slot": slot}, "select_server", sid=sid) for slot, sid in enumerate(sids)]

    def set_maglev(self, vip: Vip, sids: Sequence[int]) -> None:
        """Give Maglev's slot i to sids[i], for slots that already have servers."""
        self.modify(*self.maglev(vip, sids))

    def set_others(self, vip: Vip, slot: int, *sids: int) -> None:
        """Install the servers, one to three, that may have connections of a slot of Maglev's table besides the slot's own."""
        params = {"count": len(sids)} | dict(zip(("first", "second", "third"), (*sids, 0, 0), strict=False))
        self.insert([self.entry(LB + "second_hop.others", {"vip_id": vip.id, "slot": slot}, "set_others", **params)])

    def set_pool(self, vip: Vip, sids: Sequence[int]) -> None:
        """Install the pool entries of round robin, for a VIP without any."""
        table = LB + "assign.pool"
        self.insert(
            self.entry(table, {"vip_id": vip.id, "index": index}, "select_server", sid=sid) for index, sid in enumerate(sids)
        )
        vip.pool_size = len(sids)

    def set_timeouts(self, ticks: int) -> None:
        """Set the timeouts of connections and handshakes, in ticks of 2^20 us."""
        for table in ("fallback.timeout", "handshake.timeout"):
            self.modify(self.entry(LB + table, None, "set_timeout", ticks=ticks))

    def add_scores(self, score_class: int, a: float, weight: float = 1.0) -> None:
        shares = {"af": a, "ff": 1 - a}
        self.insert(entry for load, share in shares.items() for entry in self.score_entries(score_class, load, share, weight))

    def score_entries(self, score_class: int, load: str, share: float, weight: float = 1.0) -> list[fy.P4TableEntry]:
        """Return the scores of all codes of one load, "af" or "ff"."""
        table = f"{READING}insight.score_{load}"
        scores = ((code, score(share, weight, decode(code, 3))) for code in range(256))
        return [
            self.entry(table, {"score_class": score_class, f"n_{load}": code}, "add_score", score=score) for code, score in scores
        ]

    def key_entries(self, key: Key) -> list[fy.P4TableEntry]:
        """Return the entries of a key. Unsealing applies the rounds of sealing in reverse order."""
        entries = []
        for position in range(4):
            for rounds, i in ((READING + "retrieve.open", 3 - position), (self.masking + "seal", position)):
                mask = 0x7F if i % 2 else 0xFF
                for index, byte in enumerate(key.tables[i]):
                    match = {"epoch": key.epoch, "index": index}
                    action = "xor_b" if position % 2 else "xor_a"
                    entries.append(self.entry(f"{rounds}.round{position}", match, action, value=byte & mask))
        return entries

    def install_key(self, key: Key) -> None:
        """Install the tables of `key` in place of its epoch's, to unseal and seal with it."""
        if key.epoch in self._keyed:
            self.modify(*self.key_entries(key))
        else:
            self.insert(self.key_entries(key))
        self._keyed.add(key.epoch)

    def remove_key(self, key: Key) -> None:
        self.delete(*self.key_entries(key))
        self._keyed.remove(key.epoch)

    def activate_key(self, key: Key) -> None:
        """Seal with `key` from the next packet on."""
        params = {"epoch": key.epoch, "clock_offset": key.id & 0xFFFF}
        self.modify(self.entry(self.masking + "active_key", None, "set_active_key", **params))

    def quic_key_entries(self, key: Key) -> tuple[list[fy.P4TableEntry], list[fy.P4RegisterEntry]]:
        """Return the entries of a key, in reverse order of sealing, and the cells of registers that a program has instead.

        The output of odd rounds has 28 bits.
        """
        entries, cells = [], []
        for position in range(4):
            i = 3 - position
            mask = 0xFFFFFFF if i % 2 else 0xFFFFFFFF
            for j, words in enumerate(key.words[i]):
                name = f"{INGRESS}unseal.open.round{position}.byte{j}"
                for byte, word in enumerate(words):
                    if name in self.client.program.registers:
                        cells.append(fy.P4RegisterEntry(name, index=key.epoch << 8 | byte, data=word & mask))
                    else:
                        entries.append(self.entry(name, {"epoch": key.epoch, "byte": byte}, f"set_output{j}", value=word & mask))
        return entries, cells

    def install_quic_key(self, key: Key) -> None:
        """Install the tables and registers of `key` for QUIC in place of its epoch's, to unseal with it."""
        entries, cells = self.quic_key_entries(key)
        self.client.write(*cells)
        if key.epoch in self._quic_keyed:
            self.modify(*entries)
        else:
            self.insert(entries)
        self._quic_keyed.add(key.epoch)

    def set_static_cookies(self, key: Key, servers: Iterable[Server]) -> None:
        """Install the cookie addresses of these servers for the key's epoch."""
        for server in servers:
            match = {"epoch": key.epoch, "sid": server.sid}
            table = self.masking + "static_cookie"
            entry = self.entry(table, match, "rewrite_source", interface_id=key.static6(server.sid))
            place = key.epoch, server.sid
            self.client.write(~entry if place in self._static_cookies else +entry)
            self._static_cookies.add(place)

    def update_tree(self, vip: Vip, op: int, slot: int, sid: int, amount: int = 0) -> None:
        """Apply an operation to one leaf, by packet-out."""
        self.client.send(fy.P4PacketOut(b"\0", op=op, depth=vip.tree_depth, slot=slot, sid=sid, score=amount))


def score(share: float, weight: float, flows: int) -> int:
    """Return an entry of a score table, in units of 1/UNIT flow of a server of weight 1."""
    return min(0xFFFE, round(share * UNIT * flows / weight))

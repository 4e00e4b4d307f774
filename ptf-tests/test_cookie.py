# SPDX-License-Identifier: Apache-2.0
"""TCP cookies in the switch, by the vectors of docs/cookie-vectors.json: sealing, unsealing, rejection, and key
rotation."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise
from typing import Any

from frontage_ptf.balancer import TCP_CONTROL
from frontage_ptf.cookie import VECTORS, Key, dynamic_tsval, key_of
from frontage_ptf.frame import Frame
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint, Flow, stamped
from frontage_ptf.site import HASH, Server, Vip
from frontage_ptf.switch import KEY, FrontageTest, to_server

DIPS = {4: Endpoint(ip_address("10.1.0.9"), 8080), 6: Endpoint(ip_address("fd12:3456:a::9"), 8080)}
CLIENT4 = Endpoint(ip_address("198.51.100.7"), 4000)
VIP4 = Endpoint(ip_address("192.0.2.1"), 80)


def flow_of(vector: dict[str, Any]) -> Flow:
    client = Endpoint(ip_address(vector["client"]), vector["client_port"])
    return Flow(client, Endpoint(ip_address(vector["vip"]), vector["vip_port"]))


def is_martian(address: IPv4Address | IPv6Address) -> bool:
    return address.version == 4 and (address.packed[0] in (0, 127) or address.packed[0] >= 224)


class VectorTest(FrontageTest):
    """A VIP for each vector, with the vector's server; one key at a time."""

    control = TCP_CONTROL

    def setUp(self) -> None:
        super().setUp()
        self.site.insert([self.site.route("0.0.0.0/0", 1), self.site.route("::/0", 1)])
        self.installed: Key | None = None

    def cases(self, kind: str) -> Iterator[tuple[int, dict[str, Any], Flow]]:
        """Yield the vectors of a kind, each with only its key installed."""
        vectors = sorted(VECTORS[kind], key=lambda vector: (vector["secret"], vector["key_id"]))
        for number, vector in enumerate(vectors):
            key = key_of(vector)
            if self.installed != key:
                if self.installed is not None:
                    self.site.remove_key(self.installed)
                self.site.install_key(key)
                self.site.activate_key(key)
                self.installed = key
            yield number, vector, flow_of(vector)

    def vip_for(self, number: int, flow: Flow, sid: int) -> Vip:
        """Return a VIP whose server `sid` only the cookie reaches: Maglev gives all slots to another one."""
        version = flow.vip.address.version
        dip = DIPS[version]
        server = Server(sid, Endpoint(dip.address + number, dip.port))
        other = Server(4095 if sid != 4095 else 4094, Endpoint(dip.address + 1000 + number, dip.port))
        vip = Vip(number, flow.vip, [other, server], policy=HASH)
        self.site.add_vip(vip)
        self.site.set_maglev(vip, [other.sid, other.sid])
        return vip

    def tear_down(self, vip: Vip) -> None:
        for server in vip.servers:
            self.site.remove_server(vip, server)


class StaticVectorsAreSealed(VectorTest):
    """Towards the client, the switch writes the vector's TSval for its server, connection and clock."""

    def runTest(self) -> None:
        for number, vector, flow in self.cases("tcp_static"):
            with self.subTest(**vector):
                vip = self.vip_for(number, flow, vector["sid"])
                tsval = dynamic_tsval(vector["coarse_clock"], number, 31 - number % 32, number % 32)
                frame = flow.down(vip.servers[1].dip, options=stamped(tsval, 77), payload=b"sealed", ck=1)
                at_vip = (flow.vip.address, flow.vip.port)
                expected = Frame(frame).rewritten((PORT_MAC[1], NEIGHBOR_MAC[1]), src=at_vip, tsval=vector["tsval"], ck=0)
                self.passes(3, frame, 1, expected, "INSIGHT")
                self.tear_down(vip)


class StaticVectorsAreOpened(VectorTest):
    """Towards the server, every vector's code leads to the vector's server and leaves unchanged."""

    def runTest(self) -> None:
        for number, vector, flow in self.cases("tcp_static"):
            with self.subTest(**vector):
                vip = self.vip_for(number, flow, vector["sid"])
                frame = flow.up(options=stamped(99, vector["tsval"]), payload=b"opened")
                if is_martian(flow.client.address):
                    self.drops(1, frame, "MARTIAN_SOURCE")
                else:
                    self.goes_to(vip.servers[1], frame, "RETRIEVED_COOKIE")
                self.tear_down(vip)


class InvalidVectorsGoByHash(VectorTest):
    """Codes with wrong check bits, of another epoch or of another connection go by the hash. The server that a code
    would name without encryption is a member, too."""

    def runTest(self) -> None:
        for number, vector, flow in self.cases("tcp_invalid"):
            with self.subTest(**vector):
                vip = self.vip_for(number, flow, vector["code"] >> 3 & 0xFFF)
                frame = flow.up(options=stamped(99, vector["code"]))
                if is_martian(flow.client.address):
                    self.drops(1, frame, "MARTIAN_SOURCE")
                else:
                    self.goes_to(vip.servers[0], frame, "HASHED_BAD_COOKIE")
                self.tear_down(vip)


class CookieTest(FrontageTest):
    """One VIP with two servers. Maglev gives all slots to the first."""

    control = TCP_CONTROL

    def setUp(self) -> None:
        super().setUp()
        servers = [Server(100 + i, Endpoint(ip_address("10.1.0.9") + i, 80)) for i in range(2)]
        self.vip = Vip(1, VIP4, servers, policy=HASH)
        self.site.add_vip(self.vip)
        self.site.set_maglev(self.vip, [100, 100])
        self.flow = Flow(CLIENT4, VIP4)

    def tsval_seen(self, coarse_clock: int) -> int:
        """Return the TSval of the second server that a client receives at this clock value."""
        frame = self.flow.down(self.vip.servers[1].dip, options=stamped(dynamic_tsval(coarse_clock, 9, 8, 7)), ck=1)
        fate = self.fate(3, frame)
        self.assertEqual(1, fate.port, str(fate))
        return Frame(fate.frame).tsval


class ForgedCodesGoByHash(CookieTest):
    """Of codes from all over the 65,536, only those that a key sealed for the server and this connection lead to a
    server."""

    def runTest(self) -> None:
        keys = [KEY, Key(KEY.id + 1, bytes(range(50, 82)))]
        for key in keys:
            self.site.install_key(key)
        right = {key.seal(101, self.flow.hash) for key in keys} | {key.seal(100, self.flow.hash) for key in keys}
        before, sent = self.outcomes(), 0
        for code in range(0, 65536, 23):
            if code not in right:
                self.send(1, self.flow.up(options=stamped(1, code)))
                sent += 1
                if sent % 64 == 0:
                    self.settle()
        self.settle()
        self.assertEqual({"HASHED_BAD_COOKIE": sent}, dict(self.outcomes() - before))
        for code in right:
            sid = next(sid for key in keys for sid in (key.open(code, self.flow.hash),) if sid is not None)
            self.goes_to(self.vip.server(sid), self.flow.up(options=stamped(1, code)), "RETRIEVED_COOKIE")


class EpochWithoutKeyUnsealsNothing(CookieTest):
    """Before the first rotation one epoch has no key: the switch must not read its codes as plaintext."""

    def runTest(self) -> None:
        self.site.install_key(KEY)
        for epoch in (KEY.epoch, 1 - KEY.epoch):
            clear = epoch << 15 | 101 << 3
            self.goes_to(self.vip.servers[0], self.flow.up(options=stamped(1, clear)), "HASHED_BAD_COOKIE")


class WithoutKeysNothingIsSealed(CookieTest):
    """Without a key nothing unseals, and only the server's coarse clock leaves."""

    def runTest(self) -> None:
        for code in (0, 101 << 3, 0x8000 | 101 << 3):
            self.goes_to(self.vip.servers[0], self.flow.up(options=stamped(1, code)), "HASHED_BAD_COOKIE")
        frame = self.flow.down(self.vip.servers[1].dip, options=stamped(dynamic_tsval(0x1234, 63, 31, 31)), ck=1)
        self.comes_back(self.vip, frame, "INSIGHT", tsval=0x1234 << 16, ck=0)


class KeysRotate(CookieTest):
    """Over many rotations the two newest keys unseal, the one before them does not, and the newest seals. TSval only
    grows, at any clock value of the rotation, and where clock and key id wrap."""

    def runTest(self) -> None:
        keys = [Key(id, bytes([id & 0xFF] * 16)) for id in range(65530, 65542)]
        clock, last, seen = 65528, None, []
        for key in keys:
            self.site.install_key(key)
            if last is not None:
                seen.append(self.tsval_seen(clock & 0xFFFF))  # still sealed with the previous key
            self.site.activate_key(key)
            for tick in (0, 0, 1):
                clock += tick
                seen.append(self.tsval_seen(clock & 0xFFFF))
            self.assertEqual(key.static_tsval(101, self.flow.hash, clock & 0xFFFF), seen[-1])
            self.opens(key, last)
            last = key
        for earlier, later in pairwise(seen):
            self.assertLess((later - earlier) % 2**32, 2**31, f"TSval went back from {earlier:#x} to {later:#x} (RFC 7323, 5.3)")

    def opens(self, newest: Key, previous: Key | None) -> None:
        for key in filter(None, (newest, previous)):
            code = key.seal(101, self.flow.hash)
            self.goes_to(self.vip.servers[1], self.flow.up(options=stamped(1, code)), "RETRIEVED_COOKIE")


class RetiredKeyUnsealsNothing(CookieTest):
    """Two rotations later, codes of the old key go by the hash like unknown ones."""

    def runTest(self) -> None:
        old, middle, new = (Key(id, bytes([id] * 16)) for id in (7, 8, 9))
        for key in (old, middle):
            self.site.install_key(key)
        code = old.seal(101, self.flow.hash)
        frame = self.flow.up(options=stamped(1, code))
        self.goes_to(self.vip.servers[1], frame, "RETRIEVED_COOKIE")
        self.site.install_key(new)
        self.assertIsNone(new.open(code, self.flow.hash))
        self.assertEqual(to_server(frame, self.vip.servers[0]), self.fate(1, frame).frame)


class CodesAreBoundToTheirConnection(CookieTest):
    """A code is valid for one connection only: for another client, port or VIP port it does not unseal."""

    def runTest(self) -> None:
        self.site.install_key(KEY)
        code = KEY.seal(101, self.flow.hash)
        refused = 0
        for port in range(4001, 4065):
            flow = Flow(Endpoint(CLIENT4.address, port), VIP4)
            opened = KEY.open(code, flow.hash)
            self.assertNotEqual(101, opened, "choose other ports: these happen to open")
            refused += opened is None
            self.goes_to(self.vip.servers[0], flow.up(options=stamped(1, code)), "HASHED_BAD_COOKIE")
        self.assertGreater(refused, 64 * 3 // 4)  # 7 of 8 by the check bits, the rest by membership

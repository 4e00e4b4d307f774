# SPDX-License-Identifier: Apache-2.0
"""QUIC packets of established connections reach their server by cookie address or connection id, while it is a
member."""

from frontage_ptf.cookie import Key, plain_cid
from frontage_ptf.packets import Endpoint
from frontage_ptf.quic import INITIAL, QUIC4, QUIC6, QuicTest, cookie_address, long, own_address, short
from frontage_ptf.site import HASH, Server, Vip
from frontage_ptf.switch import KEY

OTHER = Key(KEY.id + 1, bytes(range(100, 132)))


class RetrieveTest(QuicTest):
    def found_by_address(self, vip: Vip, server: Server, key: Key = KEY) -> None:
        to = cookie_address(vip, key.static6(server.sid))
        for payload in (short(self.foreign_cid()), long(self.foreign_cid()), long(b"", size=40)):
            self.goes_to(server, self.new_conversation(vip).datagram(payload, to), "RETRIEVED_ADDRESS")

    def found_by_cid(self, vip: Vip, server: Server, cid: bytes) -> None:
        """Return packets that the connection id leads to their server: all but an Initial's datagram if the id may
        be a client's own."""
        for payload in (short(cid), short(cid, size=12), short(cid, first=0x7F), long(cid, size=INITIAL - 1), long(cid, size=60)):
            self.goes_to(server, self.new_conversation(vip).datagram(payload), "RETRIEVED_CID")

    def nonce(self) -> int:
        return self.rng.randrange(1, 1 << 24)


class CookieAddressLeadsToServer(RetrieveTest):
    """Every server, both epochs, any client address: the interface id is kept, so that the server knows under which
    one it was addressed."""

    def runTest(self) -> None:
        self.install_keys(OTHER)
        vip = self.make_quic(8)
        for server in vip.servers:
            for key in (KEY, OTHER):
                self.found_by_address(vip, server, key)
        self.assertEqual({}, self.claims())


class ConnectionIdLeadsToServer(RetrieveTest):
    """Both forms, both IP versions, both epochs."""

    def runTest(self) -> None:
        self.install_keys(OTHER)
        for id, at in ((7, QUIC6), (8, QUIC4)):
            vip = self.make_quic(4, id, at, HASH, base=16 * id, first_sid=100 * id)
            for server in vip.servers:
                for key in (KEY, OTHER):
                    self.found_by_cid(vip, server, key.cid(server.sid, self.nonce(), self.rng.randbytes(3)))
                self.found_by_cid(vip, server, plain_cid(server.sid, self.rng.randbytes(9)))
        self.assertEqual({}, self.claims())


class InitialsWithServerId(RetrieveTest):
    """After Retry an Initial has the server's id. A sealed one is used; a plaintext one may be the client's own, so
    the packet is assigned."""

    def runTest(self) -> None:
        vip = self.make_quic(4, policy=HASH)
        for server in vip.servers:
            payload = long(KEY.cid(server.sid, self.nonce()))
            self.goes_to(server, self.new_conversation(vip).datagram(payload), "RETRIEVED_CID")
            conversation = self.new_conversation(vip)
            hashed = vip.servers[conversation.hash & 3]
            self.goes_to(hashed, conversation.datagram(long(plain_cid(server.sid))), "ASSIGNED_HASH")
            self.goes_to(hashed, conversation.datagram(long(plain_cid(9))), "RETRIEVED_HANDSHAKE")


class HandshakeTableComesFirst(RetrieveTest):
    """A known handshake decides, except for a short header with a sealed id: that connection has completed its
    handshake."""

    def runTest(self) -> None:
        vip = self.make_quic(2, policy=HASH)
        one, two = vip.servers
        self.site.set_maglev(vip, [one.sid] * 2)
        conversation = self.new_conversation(vip)
        self.goes_to(one, conversation.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        sealed, plain = KEY.cid(two.sid, self.nonce()), plain_cid(two.sid)
        self.goes_to(one, conversation.datagram(long(sealed, size=100)), "RETRIEVED_HANDSHAKE")
        self.goes_to(one, conversation.datagram(long(plain, size=100)), "RETRIEVED_HANDSHAKE")
        self.goes_to(one, conversation.datagram(short(plain)), "RETRIEVED_HANDSHAKE")
        self.goes_to(two, conversation.datagram(short(sealed)), "RETRIEVED_CID")


class ForgedAddressesDrop(RetrieveTest):
    """Thousands of interface ids that no key sealed, of all kinds: each drops for a named reason before any server
    receives it."""

    def runTest(self) -> None:
        vip = self.make_quic(8)
        heads = [0b0100] * 6 + list(range(16))  # most are valid: ver 1, static, installed epoch
        count = 4000
        for n in range(count):
            to = cookie_address(vip, heads[n % len(heads)] << 60 | self.rng.getrandbits(60))
            self.send(1, self.new_conversation(vip).datagram(short(self.foreign_cid()), to))
            if n % 25 == 24:
                self.settle()
        self.assertEqual(0, self.came_out)
        self.assertEqual({"COOKIE_FORGED": count}, self.all_drops())


class OtherSealedWordsAreNotAddresses(RetrieveTest):
    """Words that a key sealed, but not as a static cookie for this address, and words sealed by a key that is not
    installed."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        server = vip.servers[0]
        static = KEY.static6(server.sid)
        foreign = Key(KEY.id, bytes(range(50, 82)))
        cases = {
            "dynamic": KEY.dynamic6(server.sid, 1, 2, 3),
            "dynamic without loads": KEY.dynamic6(server.sid),
            "static, with F set": static | 1 << 61,
            "dynamic without loads, F cleared and X": KEY.dynamic6(server.sid, x=1) & ~(1 << 61),
            "of the other epoch, which has no key": static ^ 1 << 60,
            "of a key of this epoch that is gone": foreign.static6(server.sid),
            "of the key of the other epoch": OTHER.static6(server.sid),
            "a connection id": int.from_bytes(KEY.cid(server.sid, 5)[1:9], "big"),
            "a connection id, as static": int.from_bytes(KEY.cid(server.sid, 5)[1:9], "big") ^ 3 << 62,
            "a connection id, as dynamic": int.from_bytes(KEY.cid(server.sid, 5)[1:9], "big") & (1 << 60) - 1 | 6 << 60,
            "version 0": static & (1 << 62) - 1,
            "the server's own": int(server.dip.address) & (1 << 64) - 1,
            "zero": 0,
            "one bit off": static ^ 1,
        }
        for name, interface_id in cases.items():
            with self.subTest(name):
                self.drops(
                    1,
                    self.new_conversation(vip).datagram(short(self.foreign_cid()), cookie_address(vip, interface_id)),
                    "COOKIE_FORGED",
                )
        self.found_by_address(vip, server)


class ForgedConnectionIdsDrop(RetrieveTest):
    """Thousands of connection ids in the sealed form that no key sealed, and others of foreign forms."""

    def runTest(self) -> None:
        vip = self.make_quic(8, policy=HASH)
        for n in range(3000):
            cid = self.rng.randbytes(12)
            if n % 3:
                cid = bytes([KEY.epoch << 5 | 11, (0b1000 | KEY.epoch) << 4 | cid[1] & 15]) + cid[2:]
            elif cid[0] == 0x4B:
                continue  # the plaintext form
            self.drops_later(self.new_conversation(vip).datagram(short(cid)))
        self.settle()
        self.assertEqual(0, self.came_out)
        self.assertEqual({"QUIC_NO_CONNECTION": self.sent}, self.all_drops())

    def drops_later(self, frame: bytes) -> None:
        self.send(1, frame)
        if self.sent % 25 == 0:
            self.settle()


class OtherSealedWordsAreNotConnectionIds(RetrieveTest):
    """Words that a key sealed, but not as a connection id, and ids that are truncated or have another first octet."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        sid = vip.servers[0].sid
        cid = KEY.cid(sid, 77)
        static = KEY.static6(sid)
        cases = {
            "a cookie": cid[:1] + static.to_bytes(8, "big") + cid[9:],
            "a cookie under the version of ids": cid[:1] + (static ^ 3 << 62).to_bytes(8, "big") + cid[9:],
            "no nonce": KEY.cid(sid, 0),
            "of the other epoch's key": OTHER.cid(sid, 77),
            "of the other epoch, by the first octet alone": bytes([cid[0] ^ 0x20]) + cid[1:],
            "of the other epoch, by E alone": cid[:1] + bytes([cid[1] ^ 0x10]) + cid[2:],
            "unroutable (configuration 7)": bytes([cid[0] | 0xE0]) + cid[1:],
            "of another length, by the first octet": bytes([cid[0] - 1]) + cid[1:],
            "one bit off": cid[:8] + bytes([cid[8] ^ 1]) + cid[9:],
            "with F": cid[:1] + bytes([cid[1] ^ 0x20]) + cid[2:],
        }
        for name, bad in cases.items():
            with self.subTest(name):
                self.drops(1, self.new_conversation(vip).datagram(short(bad)), "QUIC_NO_CONNECTION")
                self.drops(1, self.new_conversation(vip).datagram(long(bad, size=100)), "QUIC_SMALL")
        for length in (0, 8, 11, 13, 20):
            self.drops(1, self.new_conversation(vip).datagram(long((cid + bytes(20))[:length], size=100)), "QUIC_SMALL")


class ServersOfOtherVipsDrop(RetrieveTest):
    """Cookie address and id name a server among those of their own VIP."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        other = self.make_quic(2, 8, Endpoint(QUIC6.address, 4433), base=32, first_sid=800, prefix=0x20010DB8C00C001F)
        foreign = other.servers[0].sid
        self.found_by_address(other, other.servers[0])
        self.drops(1, self.new_conversation(vip).datagram(short(b""), cookie_address(vip, KEY.static6(foreign))), "SERVER_GONE")
        self.drops(1, self.new_conversation(vip).datagram(short(KEY.cid(foreign, 3))), "SERVER_GONE")
        self.drops(1, self.new_conversation(vip).datagram(long(KEY.cid(foreign, 3))), "SERVER_GONE")
        self.drops(1, self.new_conversation(vip).datagram(short(plain_cid(foreign))), "SERVER_GONE")
        stray = cookie_address(vip, KEY.static6(vip.servers[0].sid))
        self.drops(1, self.new_conversation(vip).datagram(short(b""), Endpoint(stray.address, other.at.port)), "VIP_NO_SERVICE")


class DrainingKeepsAndRemovalDrops(RetrieveTest):
    """Draining breaks no connection; packets for a removed server drop for that reason."""

    def runTest(self) -> None:
        vip = self.make_quic(2)
        server = vip.servers[0]
        server.active = False
        self.site.update_server(vip, server)
        self.found_by_address(vip, server)
        self.found_by_cid(vip, server, KEY.cid(server.sid, self.nonce()))
        self.site.remove_server(vip, server)
        self.drops(1, self.new_conversation(vip).datagram(short(b""), cookie_address(vip, KEY.static6(server.sid))), "SERVER_GONE")
        self.drops(1, self.new_conversation(vip).datagram(short(KEY.cid(server.sid, 3))), "SERVER_GONE")


class PreviousKeyUnseals(RetrieveTest):
    """Words of the previous key still unseal; words of the one before it do not."""

    def runTest(self) -> None:
        vip = self.make_quic(3)
        oldest, previous, newest = KEY, OTHER, Key(KEY.id + 2, bytes(range(7, 30)))
        self.install_keys(previous)
        server = vip.servers[1]
        for key in (oldest, previous):
            self.found_by_address(vip, server, key)
            self.found_by_cid(vip, server, key.cid(server.sid, 9))
        self.install_keys(newest)
        for key in (previous, newest):
            self.found_by_address(vip, server, key)
            self.found_by_cid(vip, server, key.cid(server.sid, 9))
        self.drops(
            1, self.new_conversation(vip).datagram(short(b""), cookie_address(vip, oldest.static6(server.sid))), "COOKIE_FORGED"
        )
        self.drops(1, self.new_conversation(vip).datagram(short(oldest.cid(server.sid, 9))), "QUIC_NO_CONNECTION")


class ClientMigrates(RetrieveTest):
    """The switch finds a connection after any change of the client's address and port, before and after it takes
    the cookie address."""

    def runTest(self) -> None:
        vip = self.make_quic(4, policy=HASH)
        conversation = self.new_conversation(vip)
        server = vip.servers[conversation.hash & 3]
        self.goes_to(server, conversation.datagram(long(self.foreign_cid())), "ASSIGNED_HASH")
        self.comes_from(vip.at, conversation.response(own_address(server, KEY.dynamic6(server.sid))), "INSIGHT")
        for _ in range(5):
            elsewhere = self.new_conversation(vip)
            self.goes_to(server, elsewhere.datagram(short(KEY.cid(server.sid, self.nonce()))), "RETRIEVED_CID")
            to = cookie_address(vip, KEY.static6(server.sid))
            self.goes_to(server, elsewhere.datagram(short(KEY.cid(server.sid, self.nonce())), to), "RETRIEVED_ADDRESS")
